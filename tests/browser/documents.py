"""Documents for the browser tests: a receipt as a kiosk sends it, with its picture or without, or with malice in it."""

import hashlib
import uuid
from pathlib import Path

from docferry import samples
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.v1 import envelope_pb2

TABLE = "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea &amp; cake</td><td>9.00</td></tr></table>"
TEXTS = ("Corner Shop", "Invoice No: 4711", "Date: 2024-03-12", "Total: 9.00")
MALICE = "<img src=x onerror=\"window.hit='{0}'\"><script>window.hit='{0}'</script>\"'><svg onload=window.hit='{0}'>"
EVIL_TABLE = (
    f"<table><tr><td onclick=\"window.hit='td'\">{MALICE.format('cell')}</td>"
    "<td>&lt;script&gt;window.hit='e'&lt;/script&gt;</td></tr></table>"
)
EVIL_LATEX = r"\href{javascript:window.hit='latex'}{x}" "</script><script>window.hit='l'</script>"
WIDTH, HEIGHT = 800, 1200


def photo() -> bytes:
    """A photographed receipt."""
    return next(path for path in samples.paths() if path.stem == "thermal_receipt").read_bytes()


def _page(texts, table, latex) -> Page:
    lines = tuple(
        Line(f"r1.l{n}", text, _quad(0.08 + n * 0.08), 0.99, confidence=0.97, provenance="edge:double@1")
        for n, text in enumerate(texts)
    )
    regions = [Region("r1", RegionType.TEXT, (0.1, 0.05, 0.7, 0.5), 0, lines=lines)]
    regions.append(Region("r2", RegionType.TABLE, (0.1, 0.6, 0.7, 0.8), 1, html=table))
    if latex:
        line = Line("r3.l1", latex, _quad(0.85), 0.9, confidence=0.9, provenance="edge:double@1")
        regions.append(Region("r3", RegionType.EQUATION, (0.1, 0.84, 0.7, 0.92), 2, latex=latex, lines=(line,)))
    return Page(WIDTH, HEIGHT, tuple(regions))


def _quad(top):
    return ((0.1, top), (0.7, top), (0.7, top + 0.05), (0.1, top + 0.05))


def receipt(*, texts=TEXTS, table=TABLE, latex="", file_name="receipt.jpg", picture: bytes | None = None, pages=1):
    """The envelope of a receipt."""
    reading = Reading(Document((_page(texts, table, latex),) * pages), "double@1")
    parts = []
    if picture is not None:
        parts = [
            envelope_pb2.Part(
                part_id="p1",
                kind=envelope_pb2.PART_KIND_PAGE,
                size=len(picture),
                sha256=hashlib.sha256(picture).digest(),
                media_type="image/jpeg",
                data=picture,
            )
        ]
    return envelope_pb2.Envelope(
        request_id=str(uuid.uuid4()),
        document_id=str(uuid.uuid4()),
        protocol_version=1,
        file_name=file_name,
        original_bytes=1000,
        structure=pack_reading(reading),
        parts=parts,
    )


def malicious():
    """One that would like to run something, wherever it is shown."""
    return receipt(
        texts=(MALICE.format("text"), f"Invoice No: {MALICE.format('field')}", "Total: 9.00", "{{7*7}} ${alert(1)}"),
        latex=EVIL_LATEX,
        file_name="<script>window.hit='name'</script>.jpg",
    )


def picture_file(folder: Path) -> Path:
    """The photographed receipt as a file."""
    file = folder / "receipt.jpg"
    file.write_bytes(photo())
    return file
