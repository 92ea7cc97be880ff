"""Nothing that a camera wrote beside the pixels leaves the device."""

import io
import time
import uuid

import pytest
from PIL import Image

from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.route import CropPlan, Decision, Plan, Route
from docferry_edge.assess import assess
from docferry_edge.desk import Identity
from docferry_edge.examine import Examined, default_calibration
from docferry_edge.pack import pack
from docferry_edge.pictures import Pictures
from docferry_edge.prepare import Frame, prepare
from tests.edge.preparation.papers import letter

MARKS = (b"EXIFMAKERMARK", b"GPSAREAMARK", b"XMPPACKETMARK", b"COMMENTMARK")


def photo(kind):
    exif = Image.Exif()
    exif[0x010F] = MARKS[0].decode()
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 12.0), 28: MARKS[1], 29: "2026:01:01"}
    options = {"exif": exif}
    if kind == "JPEG":
        options |= {"comment": MARKS[3], "xmp": b"<x:xmpmeta>" + MARKS[2] + b"</x:xmpmeta>"}
    buffer = io.BytesIO()
    Image.fromarray(letter()[:, :, ::-1]).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("decision", [Decision.PAGE, Decision.CROPS, Decision.OVERVIEW])
def test_no_metadata_of_the_frame_occurs_in_any_byte_sent(kind, decision):
    data = photo(kind)
    assert MARKS[0] in data
    assert MARKS[1] in data
    page = prepare(Frame(data, "photo"))
    polygon = ((0.1, 0.1), (0.9, 0.1), (0.9, 0.2), (0.1, 0.2))
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.9, 0.2), 0, lines=(Line("r1.l1", "hello", polygon, 1.0),))
    reading = Reading(Document((Page(page.width, page.height, (region,), page.quality),)), "reader@00")
    examined = Examined(page, assess(reading, default_calibration()), {})
    plan = Plan(Route(decision, (), 0.0, 0.02), (CropPlan(0, (0.1, 0.1, 0.9, 0.2)),))
    identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), "photo", len(data), time.time())
    packed = pack(identity, examined, plan, Pictures())
    sent = packed.request + b"".join(part.data for part in packed.parts)
    assert len(sent) > 1000
    for mark in (*MARKS, b"Exif", b"EXIF", b"XMP ", b"GPS"):
        assert mark not in sent
