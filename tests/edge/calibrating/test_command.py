"""`docferry calibrate` and `docferry correct`, with the real reader."""

import io
import json
from pathlib import Path

import pytest
import typer
from PIL import Image, ImageDraw, ImageFont
from typer.testing import CliRunner

from docferry.calibration import load_calibration
from docferry.errors import ConfigurationError, InputError, TooFewLabels
from docferry.model_store import default_store
from docferry_edge.calibrating.command import calibrate, correct
from docferry_edge.calibrating.corrections import add_correction, corrections
from docferry_edge.examine import load_examiner
from docferry_edge.prepare import Frame
from docferry_edge.read import Reader


@pytest.fixture(scope="module")
def app():
    app = typer.Typer()
    app.command("calibrate")(calibrate)
    app.command("correct")(correct)
    return app


@pytest.fixture(scope="module")
def reader_name():
    return Reader.load(default_store(), threads=1).name


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "edge.toml"
    file.write_text(f'[state]\ndirectory = "{tmp_path / "state"}"\n', encoding="utf-8")
    return file


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    page = Image.new("RGB", (600, 260), "white")
    pen = ImageDraw.Draw(page)
    for number, text in enumerate(("HARBOUR BOOKS", "Date 14/03/2025", "TOTAL RM 12.50")):
        pen.text((60, 40 + 70 * number), text, "black", ImageFont.load_default(30))
    file = tmp_path / "receipt.png"
    buffer = io.BytesIO()
    page.save(buffer, "PNG")
    file.write_bytes(buffer.getvalue())
    return file


def run(app, *arguments):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_a_picture_is_listed_then_corrected_and_the_label_is_kept(app, config, receipt, tmp_path, reader_name) -> None:
    listed = run(app, "correct", receipt, "--config", config)
    assert "nothing stored" in listed.output
    last = next(row.split()[0] for row in listed.output.splitlines() if "12.50" in row)
    assert not corrections(tmp_path / "state")
    told = run(app, "correct", receipt, "--line", f"{last}=TOTAL RM 12.60", "--config", config)
    assert "3 lines stored as labels, 1 of them wrong" in told.output
    (label,) = corrections(tmp_path / "state", reader_name)
    assert sum(line.right for line in label.lines) == 2
    run(app, "correct", receipt, "--all-right", "--config", config)
    (label,) = corrections(tmp_path / "state", reader_name)
    assert all(line.right for line in label.lines)


def test_a_correction_that_names_no_line_is_refused(app, config, receipt) -> None:
    with pytest.raises(InputError, match="names no line"):
        run(app, "correct", receipt, "--line", "TOTAL", "--config", config)


def test_corrections_become_a_calibration_that_the_agent_reads_with(
    app, config, receipt, tmp_path, drawing, reader_name
) -> None:
    for document in drawing.documents(60, reader=reader_name):
        add_correction(tmp_path / "state", document)
    out = tmp_path / "mine.json"
    told = run(
        app, "calibrate", "--corrections", "--target-risk", 0.05, "--target-risk", 0.1, "--out", out, "--config", config
    )
    assert told.exit_code == 0
    assert "of the lines accepted at confidence" in told.output
    assert "60 documents" in told.output
    found = load_calibration(out.read_text(encoding="utf-8"), str(out))
    assert [one.target_risk for one in found.thresholds] == [0.05, 0.1]
    assert found.data == "corrections made by people"
    lines = load_examiner(1, out)(Frame(receipt.read_bytes(), "receipt")).assessment.reading.document.lines
    assert all(0.0 < (line.confidence or 0.0) < 1.0 for line in lines)


def test_claims_beyond_the_labels_are_refused_by_name(app, config, tmp_path, drawing, reader_name) -> None:
    for document in drawing.documents(30, reader=reader_name):
        add_correction(tmp_path / "state", document)
    arguments = (
        "calibrate",
        "--corrections",
        "--confidence",
        0.95,
        "--config",
        config,
        "--out",
        tmp_path / "mine.json",
    )
    with pytest.raises(TooFewLabels, match="are needed even if no line is wrong"):
        run(app, *arguments, "--target-risk", 0.02)
    assert not (tmp_path / "mine.json").exists()


def test_a_folder_with_too_few_documents_is_refused(app, receipt, tmp_path) -> None:
    (tmp_path / "gt").mkdir()
    tree = {"id": "a", "image": receipt.name, "lines": [{"bbox": [60, 40, 300, 70], "text": "HARBOUR BOOKS"}]}
    (tmp_path / "gt" / "a.json").write_text(json.dumps(tree), encoding="utf-8")
    with pytest.raises(TooFewLabels, match="too few to fit on"):
        run(app, "calibrate", "--data", tmp_path, "--out", tmp_path / "mine.json")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target-risk", 0.02), "nothing to fit on"),
        (("--corrections", "--target-risk", 2), "no share between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(app, tmp_path, arguments, said) -> None:
    with pytest.raises(InputError, match=said):
        run(app, "calibrate", *arguments, "--out", tmp_path / "mine.json")


@pytest.mark.parametrize("text", [None, "{}"])
def test_a_calibration_that_is_missing_or_none_stops_the_reader_by_name(tmp_path, text) -> None:
    file = tmp_path / "mine.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="mine"):
        load_examiner(1, file)
