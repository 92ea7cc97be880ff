"""`docferry calibrate` and `docferry correct`: fitting a calibration on labels, and giving labels by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docferry import console
from docferry.errors import InputError, TooFewLabels
from docferry.settings import load
from docferry_edge.calibrating.labels import Comparison, LabelledDocument

if TYPE_CHECKING:
    from docferry.document import Line
    from docferry_edge.calibrating.fit import Claim, Fitted
    from docferry_edge.read import Reader

_DEFAULT_RISKS = [0.02, 0.05, 0.10]


def calibrate(
    out: Annotated[Path, typer.Option("--out", help="Where the calibration is written.")],
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of labelled documents: gt/*.json and pictures.")
    ] = None,
    corrections: Annotated[
        bool, typer.Option("--corrections", help="Use what `docferry correct` stored, too.")
    ] = False,
    target_risk: Annotated[
        list[float] | None,
        typer.Option("--target-risk", help="At most this share of accepted lines wrong; repeatable."),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Make the claims hold with this probability, not on average.")
    ] = None,
    compare: Annotated[
        Comparison, typer.Option("--compare", help="loose: letters in one case, digits, decimal points.")
    ] = Comparison.EXACT,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fit from nothing; else the shipped weights are adapted.")
    ] = False,
    threads: Annotated[int, typer.Option("--threads", min=1, max=64, help="Threads each network may use.")] = 2,
    config: Annotated[Path | None, typer.Option("--config", help="The agent's TOML file, for --corrections.")] = None,
) -> None:
    """Fit a calibration on labelled documents, and thresholds that keep the stated risks."""
    from docferry.calibration import dump_calibration
    from docferry.model_store import default_store
    from docferry_edge.calibrating.fit import Claim, fit
    from docferry_edge.examine import default_calibration
    from docferry_edge.read import Reader

    claims = _claims(target_risk or _DEFAULT_RISKS, confidence, Claim)
    if data is None and not corrections:
        raise InputError("nothing to fit on", remedy="give --data DIR, or --corrections")
    reader = Reader.load(default_store(), threads=threads)
    labels = _labels(reader, data, compare) if data is not None else []
    if corrections:
        labels += _corrections(reader, config)
    fitted = fit(
        labels,
        claims,
        data=_words(data, corrections),
        date=datetime.now(UTC).date().isoformat(),
        prior=None if fresh else default_calibration(),
    )
    if not fitted.calibration.thresholds:
        raise fitted.refused[0][1]
    out.write_text(dump_calibration(fitted.calibration), encoding="utf-8")
    for line in told(fitted):
        typer.echo(line)
    typer.echo(f"written to {out}")
    if fitted.refused:
        raise typer.Exit(1)


def correct(
    file: Annotated[Path, typer.Argument(help="The picture whose reading is corrected.")],
    line: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="ID=TEXT", help="What is really printed there; nothing after = for no text."),
    ] = None,
    all_right: Annotated[bool, typer.Option("--all-right", help="Every line is right as it was read.")] = False,
    threads: Annotated[int, typer.Option("--threads", min=1, max=64, help="Threads each network may use.")] = 2,
    config: Annotated[
        Path | None, typer.Option("--config", help="The agent's TOML file: where labels are kept.")
    ] = None,
) -> None:
    """Say which lines of a picture were read wrong; all others count as checked and right.

    Without --line and --all-right the lines are listed, and nothing is stored.
    """
    from docferry.upload import read_file
    from docferry_edge.calibrating.corrections import add_correction
    from docferry_edge.calibrating.truth import corrected
    from docferry_edge.examine import load_examiner
    from docferry_edge.prepare import Frame
    from docferry_edge.reading_settings import reading_settings
    from docferry_edge.settings import SETTINGS, edge_settings

    values = load(SETTINGS, config)
    settings = edge_settings(values)
    data = read_file(file)
    texts = dict(map(_correction, line or []))
    examine = load_examiner(threads, reading_settings(values).calibration)
    reading = examine(Frame(data, str(file))).assessment.reading
    if not texts and not all_right:
        for row in _listed(reading.document.lines):
            typer.echo(row)
        typer.echo("nothing stored: name the wrong lines with --line ID=TEXT, or say --all-right")
        return
    # The picture's hash names the document: corrected again, it replaces what was said before.
    label = corrected(hashlib.sha256(data).hexdigest(), reading, texts)
    add_correction(settings.state, label)
    wrong = sum(not one.right for one in label.lines)
    typer.echo(f"{file}: {len(label.lines)} lines stored as labels, {wrong} of them wrong, in {settings.state}")


def told(fitted: Fitted) -> Iterable[str]:
    """What a fit is worth, in plain words."""
    calibration = fitted.calibration
    yield f"fitted for {calibration.reader} on {calibration.lines} lines of {calibration.documents} documents"
    for threshold in calibration.thresholds:
        yield f"target {threshold.target_risk:g}: {threshold.claim}"
    for _, error in fitted.refused:
        yield f"refused: {error}"


def _claims(risks: Sequence[float], confidence: float | None, claim: type[Claim]) -> list[Claim]:
    for value in (*risks, *([] if confidence is None else [confidence])):
        if not 0.0 < value < 1.0:
            raise InputError(f"{value:g} is no share between 0 and 1", remedy="give a number such as 0.02")
    return [claim(risk, confidence) for risk in sorted(set(risks))]


def _labels(reader: Reader, data: Path, compare: Comparison) -> list[LabelledDocument]:
    """Read and label every document of the folder; one that cannot be read is an error, not a gap."""
    from docferry.upload import read_file
    from docferry.vision.images import decode
    from docferry_edge.calibrating.truth import label, load_truths
    from docferry_edge.prepare import Frame

    truths = load_truths(data)
    labels: list[LabelledDocument] = []
    with console.progress() as bar:
        task = bar.add_task("reading", total=len(truths))
        for truth in truths:
            picture = read_file(truth.image)
            page = reader.prepare(Frame(picture, str(truth.image)))
            height, width = decode(picture, name=str(truth.image)).shape[:2]
            labels.append(label(truth, page, reader.read_all(page), (width, height), compare))
            bar.advance(task)
    return labels


def _corrections(reader: Reader, config: Path | None) -> list[LabelledDocument]:
    from docferry_edge.calibrating.corrections import corrections
    from docferry_edge.settings import SETTINGS, edge_settings

    folder = edge_settings(load(SETTINGS, config)).state
    found = corrections(folder, reader.name)
    if not found:
        raise TooFewLabels(
            f"{folder} holds no corrections for the reader {reader.name}",
            remedy="give some with `docferry correct FILE`",
            documents="0",
        )
    return found


def _correction(text: str) -> tuple[str, str]:
    name, separator, printed = text.partition("=")
    if not separator or not name:
        raise InputError(f"{text!r} names no line", remedy="write --line ID=TEXT, such as --line 'r1.l3=TOTAL 9.00'")
    return name.strip(), printed


def _listed(lines: Sequence[Line]) -> Iterable[str]:
    for line in lines:
        yield f"{line.id:10} {line.confidence or 0.0:.3f}  {line.text}"


def _words(data: Path | None, corrections: bool) -> str:
    parts = [f"labelled documents in {data.resolve().name}"] if data is not None else []
    return " and ".join([*parts, *(["corrections made by people"] if corrections else [])])
