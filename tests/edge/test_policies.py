"""Policies differ by tenant and document type, limits hold for what is really packed, and the hour is remembered."""

import time
import uuid

import numpy as np
import pytest

from docferry.errors import ConfigurationError
from docferry.fields.sensitive import Sensitive
from docferry.settings import load
from docferry.v1 import analysis_service_pb2
from docferry_edge.dispatch import dispatch
from docferry_edge.pack import Identity, Pictures
from docferry_edge.policies import Policies
from docferry_edge.prices import default_prices, load_prices
from docferry_edge.rates import HourLimits, Meter
from docferry_edge.route import Mode, Policy, Room
from docferry_edge.settings import SETTINGS, edge_settings
from tests.edge.test_redact import ROWS, examined


def policies(tmp_path, text: str) -> Policies:
    file = tmp_path / "edge.toml"
    file.write_text(text, encoding="utf-8")
    return edge_settings(load(SETTINGS, file, {})).policies


RECEIPT = examined(ROWS).assessment.reading.document
PROSE = examined(["The harbour carries a steady wooden signal", "and opens an early letter."]).assessment.reading


def test_the_defaults_send_as_little_as_meets_two_percent(tmp_path) -> None:
    policy = policies(tmp_path, "").of(RECEIPT)
    assert policy == Policy()


def test_the_most_particular_policy_wins(tmp_path) -> None:
    found = policies(
        tmp_path,
        """
        [route]
        tenant = "clinic"
        target_risk = 0.05
        policies = [
            {document = "receipt", mode = "metered"},
            {tenant = "clinic", target_risk = 0.01, redact = ["card", "email"]},
            {tenant = "bakery", mode = "offline"},
        ]
        """,
    )
    receipt, prose = found.of(RECEIPT), found.of(PROSE.document)
    assert (receipt.mode, receipt.target_risk) == (Mode.METERED, 0.01)
    assert (prose.mode, prose.target_risk) == (Mode.NORMAL, 0.01)
    assert receipt.redact == {Sensitive.CARD, Sensitive.EMAIL}
    assert found.may_withhold


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('mode = "sometimes"', "normal, metered, no_images, offline"),
        ('redact = ["shoe_size"]', "card, iban"),
        ("policies = [3]", "a list of tables"),
        ('policies = [{document = "poem"}]', "receipt"),
        ("policies = [{target_risk = 1.5}]", "of 0..1"),
        ("policies = [{max_byte = 5}]", "max_bytes"),
        ('policies = [{max_bytes = "many"}]', "a int"),
    ],
)
def test_a_wrong_policy_is_refused_with_what_is_allowed(tmp_path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policies(tmp_path, f"[route]\n{text}\n")
    assert words in caught.value.remedy


def test_a_limit_holds_for_the_bytes_that_are_really_packed() -> None:
    noise = np.random.default_rng(3).integers(0, 255, (1000, 800, 3), dtype=np.uint8)
    page = examined(ROWS, 0.6, noise)
    identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), "noise.png", 2_000_000, time.time())
    free = dispatch(identity, page, Policies(Policy(audit_share=0.0)), Pictures())
    assert free.size > 2 * free.plan.bytes, "noise costs more than print: the price table must be off here"
    limited = dispatch(identity, page, Policies(Policy(audit_share=0.0, max_bytes=9000)), Pictures())
    assert limited.size <= 9000
    assert analysis_service_pb2.SubmitRequest.FromString(limited.packed.request).envelope.parts


class Kept:
    text = ""


def meter(limits: HourLimits, now: list[float], kept: Kept) -> Meter:
    return Meter(limits, lambda: now[0], lambda: kept.text, lambda text: setattr(kept, "text", text))


def test_the_hour_fills_and_empties_and_survives_a_restart() -> None:
    now, kept = [1000.0], Kept()
    first = meter(HourLimits(10_000, 2), now, kept)
    assert first.room() == Room(10_000, 2)
    first.left(7000, page=True)
    now[0] += 600
    first.left(9000, page=True)
    again = meter(HourLimits(10_000, 2), now, kept)
    assert again.room() == Room(0, 0)
    now[0] += 3001
    assert again.room() == Room(1000, 1)
    now[0] += 3600
    assert again.room() == Room(10_000, 2)


def test_without_limits_nothing_is_counted_or_stored() -> None:
    now, kept = [0.0], Kept()
    free = meter(HourLimits(), now, kept)
    free.left(10**9, page=True)
    assert free.room() == Room()
    assert kept.text == ""


def test_the_shipped_prices_say_where_they_come_from_and_rise_as_they_should() -> None:
    prices = default_prices()
    assert "generator" in prices.data
    assert "engine" in prices.data or "cloud" in prices.data
    for height in {grade.text_height for grade in prices.grades}:
        column = [grade for grade in prices.grades if grade.text_height == height]
        assert [grade.crop_rate for grade in column] == sorted(grade.crop_rate for grade in column)
        assert [grade.repair for grade in column] == sorted(grade.repair for grade in column)


def test_prices_between_two_measured_grades_lie_between_theirs() -> None:
    prices = default_prices()
    low, high = prices.at(18.0, 40), prices.at(24.0, 40)
    middle = prices.at(21.0, 40)
    assert min(low.crop_rate, high.crop_rate) <= middle.crop_rate <= max(low.crop_rate, high.crop_rate)
    assert prices.at(500.0, 40).repair == prices.at(32.0, 40).repair
    assert prices.at(21.0, 30).quality == 30


@pytest.mark.parametrize("text", ["", "{}", '{"grades": []}', '{"grades": [{"text_height": 1}]}'])
def test_a_broken_table_of_prices_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        load_prices(text, "here")
