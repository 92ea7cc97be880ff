"""An envelope that breaks the contract is refused by name, whatever is wrong with it."""

import hashlib
import uuid
from collections.abc import Callable

import pytest

from docferry.channel import MAX_ENVELOPE_BYTES
from docferry.envelope import check_envelope
from docferry.errors import EnvelopeError, EnvelopeTooLarge, UnsupportedVersion
from docferry.v1 import document_pb2
from docferry.v1 import envelope_pb2 as pb


def good() -> pb.Envelope:
    data = b"pixels"
    return pb.Envelope(
        request_id=str(uuid.uuid4()),
        document_id=str(uuid.uuid4()),
        protocol_version=1,
        structure=pb.Payload(encoding=pb.ENCODING_IDENTITY, data=b"x", decoded_size=1),
        parts=[
            pb.Part(
                part_id="crop-1",
                kind=pb.PART_KIND_CROP,
                box=document_pb2.Box(x0=0.1, y0=0.1, x1=0.2, y1=0.2),
                size=len(data),
                sha256=hashlib.sha256(data).digest(),
                data=data,
            )
        ],
    )


def test_a_good_envelope_passes() -> None:
    check_envelope(good())


def spoil(name: str) -> Callable[[pb.Envelope], None]:
    def twice(e: pb.Envelope) -> None:
        e.parts.add().CopyFrom(e.parts[0])

    def empty(e: pb.Envelope) -> None:
        e.ClearField("structure")
        e.ClearField("parts")

    changes: dict[str, Callable[[pb.Envelope], object]] = {
        "request_id": lambda e: setattr(e, "request_id", "7"),
        "document_id": lambda e: setattr(e, "document_id", str(uuid.uuid4()).upper()),
        "effort": lambda e: setattr(e, "effort", 99),
        "route.decision": lambda e: setattr(e.route, "decision", 99),
        "route": lambda e: setattr(e.route, "risk", float("nan")),
        "route.reasons": lambda e: e.route.reasons.add(code="X", detail="x" * 600),
        "file_name": lambda e: setattr(e, "file_name", "x" * 300),
        "structure": empty,
        "parts[0].kind": lambda e: setattr(e.parts[0], "kind", 99),
        "parts[0].part_id": lambda e: setattr(e.parts[0], "part_id", "../../etc/passwd"),
        "parts[1].part_id": twice,
        "parts[0].size": lambda e: setattr(e.parts[0], "size", 1 << 40),
        "parts[0].sha256": lambda e: setattr(e.parts[0], "sha256", b"short"),
        "parts[0].data": lambda e: setattr(e.parts[0], "data", b"pixelz"),
        "parts[0].box": lambda e: setattr(e.parts[0].box, "x1", float("nan")),
    }
    return changes[name]  # type: ignore[return-value]


@pytest.mark.parametrize(
    "field",
    [
        "request_id",
        "document_id",
        "effort",
        "route.decision",
        "route",
        "route.reasons",
        "file_name",
        "structure",
        "parts[0].kind",
        "parts[0].part_id",
        "parts[1].part_id",
        "parts[0].size",
        "parts[0].sha256",
        "parts[0].data",
        "parts[0].box",
    ],
)
def test_what_is_wrong_is_named(field: str) -> None:
    envelope = good()
    spoil(field)(envelope)
    with pytest.raises(EnvelopeError) as error:
        check_envelope(envelope)
    assert error.value.metadata["field"] == field
    assert error.value.remedy


def test_a_file_name_that_a_database_cannot_hold_is_refused() -> None:
    envelope = good()
    envelope.file_name = "receipt\0.jpg"
    with pytest.raises(EnvelopeError, match="NUL") as error:
        check_envelope(envelope)
    assert error.value.metadata["field"] == "file_name"


def test_another_protocol_version_says_which_one_is_spoken() -> None:
    envelope = good()
    envelope.protocol_version = 2
    with pytest.raises(UnsupportedVersion) as error:
        check_envelope(envelope)
    assert error.value.metadata["supported"] == "1"


def test_an_envelope_over_the_limit_is_refused() -> None:
    envelope = good()
    envelope.structure.data = bytes(MAX_ENVELOPE_BYTES)
    with pytest.raises(EnvelopeTooLarge, match="bytes"):
        check_envelope(envelope)
