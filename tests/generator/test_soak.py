"""What the soak test says of a curve, and that no two of its pages are alike."""

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchmarks.soak import Look, fitted_growth, quarters_growth, soak, summary
from benchmarks.soak_pages import varied


@given(st.floats(10, 1000), st.floats(-0.5, 2), st.integers(4, 50))
def test_growth_is_told_as_a_share_of_the_beginning(start: float, share: float, count: int) -> None:
    places = [100 + 20 * number for number in range(count)]
    values = [start * (1 + share * number / (count - 1)) for number in range(count)]
    assert fitted_growth(places, values) == pytest.approx(share, abs=1e-6)
    assert -1 < quarters_growth(values) <= max(share, 0) + 1e-9
    assert quarters_growth([start] * count) == pytest.approx(0, abs=1e-9)


def test_a_steady_process_has_no_growth_and_a_leak_is_seen() -> None:
    steady = [Look(20 * n, 1, 200.0 + n % 2, 300.0, 9, 8) for n in range(1, 21)]
    leaking = [Look(20 * n, 1, 200.0 + 4 * n, 300.0, 9 + n, 8) for n in range(1, 21)]
    assert abs(summary(steady)["growth_fit"]) < 0.01
    assert summary(leaking)["growth_fit"] > 0.3
    assert (summary(leaking)["handles_growth"], summary(steady)["handles_growth"]) == (19, 0)


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.radial_gradient("L").save(buffer, "PNG")
    return buffer.getvalue()


def test_pages_are_mixed_the_same_every_time_and_odd_files_stay_as_they_are() -> None:
    files = dict(varied([picture(), b"no picture"], 40))
    assert len(files) == 40
    assert files == dict(varied([picture(), b"no picture"], 40))
    pictures = [data for name, data in files.items() if not name.endswith(".bin")]
    assert len(set(pictures)) == len(pictures) > 10
    assert {Image.open(io.BytesIO(data)).format for data in pictures} == {"JPEG", "PNG", "WEBP"}
    assert {data for name, data in files.items() if name.endswith(".bin")} == {b"no picture"}


def test_the_real_agent_is_fed_and_looked_at(tmp_path) -> None:
    agents, readers, failed = asyncio.run(soak(2, [picture(), b"no picture"], tmp_path))
    assert [look.pages for look in agents] == [2]
    assert agents[0].pid != readers[0].pid
    assert agents[0].rss_mb < readers[0].rss_mb
    assert failed == 1
