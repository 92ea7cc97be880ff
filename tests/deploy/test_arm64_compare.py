"""The judge of `make test-arm64`: the same text up to rounding."""

import copy
import importlib.util
import json
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "deploy" / "arm64" / "compare.py"


@pytest.fixture(scope="module")
def judge():
    spec = importlib.util.spec_from_file_location("arm64_compare", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def line(name: str, text: str, y: float) -> dict:
    return {
        "id": name,
        "text": text,
        "polygon": [[0.1, y], [0.9, y], [0.9, y + 0.02], [0.1, y + 0.02]],
        "score": 0.98,
        "confidence": 0.9,
        "provenance": "edge:small@1234",
    }


def document() -> dict:
    region = {
        "id": "r1",
        "type": "text",
        "box": [0.1, 0.1, 0.9, 0.3],
        "order": 0,
        "score": 0.8,
        "confidence": None,
        "html": "",
        "latex": None,
        "lines": [line("r1.l1", "TOTAL 9.00", 0.1), line("r1.l2", "CASH 10.00", 0.2)],
    }
    return {
        "file": "a.jpg",
        "status": "read",
        "pages": [{"width": 640, "height": 960, "regions": [region]}],
        "fields": [{"name": "total", "value": "9.00", "normalized": "9.00", "confidence": 0.9}],
        "markdown": "TOTAL 9.00",
        "timings_ms": {"read": 100},
    }


def changed(**values: object) -> dict:
    """The document with other values in its second line."""
    tree = document()
    tree["pages"][0]["regions"][0]["lines"][1].update(values)
    return tree


def moved(pixels: float) -> dict:
    tree = document()
    tree["pages"][0]["regions"][0]["lines"][1]["polygon"][2][1] += pixels / 960
    return tree


@pytest.mark.parametrize("other", [document(), moved(1.9), changed(score=0.975), changed(confidence=0.5)])
def test_rounding_is_not_a_difference(judge, other: dict) -> None:
    assert judge.compare(document(), other).differences == []


def enlarged(tree: dict) -> dict:
    tree["pages"][0] |= {"width": 2560, "height": 3840}
    return tree


def test_a_page_larger_than_the_detectors_map_is_judged_in_the_maps_pixels(judge) -> None:
    # The detector sees its 3840 rows as 1088, so two of its pixels are seven rows; 1.5 of 960 are six of 3840.
    found = judge.compare(enlarged(document()), enlarged(moved(1.5)))
    assert found.differences == []
    assert found.pixels == pytest.approx(6)
    assert judge.compare(enlarged(document()), enlarged(moved(1.9))).differences


def test_the_largest_distances_are_told(judge) -> None:
    found = judge.compare(document(), moved(1.9))
    assert found.lines == 2
    assert found.pixels == pytest.approx(1.9)
    assert judge.compare(document(), changed(score=0.975)).score == pytest.approx(0.005)
    assert judge.compare(document(), changed(confidence=0.5)).confidence == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (changed(text="CASH 1O.00"), "text"),
        (changed(score=0.95), "score"),
        (changed(score=None), "score"),
        (changed(provenance="edge:other@1234"), "reader"),
        (moved(2.5), "2.50 pixels apart"),
    ],
)
def test_each_difference_is_named(judge, other: dict, word: str) -> None:
    (difference,) = judge.compare(document(), other).differences
    assert "line r1.l2" in difference
    assert word in difference


def test_a_line_a_region_or_a_page_too_few_is_a_difference(judge) -> None:
    for part in ("lines", "regions", "pages"):
        other = copy.deepcopy(document())
        {
            "lines": other["pages"][0]["regions"][0]["lines"],
            "regions": other["pages"][0]["regions"],
            "pages": other["pages"],
        }[part].pop()
        (difference,) = judge.compare(document(), other).differences
        assert f"number of {part}" in difference


def test_other_fields_are_a_difference(judge) -> None:
    other = document()
    other["fields"][0]["normalized"] = "9.90"
    (difference,) = judge.compare(document(), other).differences
    assert difference.startswith("fields")


def test_the_exit_status_is_the_verdict(judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    here.write_text(json.dumps(document()) + "\n")
    there.write_text(json.dumps(moved(1.9) | {"file": "/elsewhere/a.jpg"}) + "\n")
    assert judge.main(here, there) == 0
    assert "a.jpg: 2 lines, same text; at most 1.90 pixels" in capsys.readouterr().out
    there.write_text(json.dumps(changed(text="?")) + "\n")
    assert judge.main(here, there) == judge.DIFFERENT
    there.write_text("")
    assert judge.main(here, there) == judge.DIFFERENT
