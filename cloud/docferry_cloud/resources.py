"""Stored rows as the resources that clients see."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import status_pb2

from docferry.errors import InputError
from docferry.v1 import analysis_pb2 as pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry.v1 import event_pb2 as event_pb
from docferry_cloud.event_log import EventRow
from docferry_cloud.rows import AnalysisRow, PartRow, VersionRow, WantRow
from docferry_cloud.schema import EventType, State, WantState

Row = TypeVar("Row")
_PAGE_SIZE = 20
_PAGE_MAXIMUM = 100


def analysis(row: AnalysisRow) -> pb.Analysis:
    """An analysis; a version without content stays a head."""
    message = pb.Analysis(
        analysis_id=row.analysis_id,
        request_id=row.request_id,
        document_id=row.document_id,
        state=state_number(row.state),
        create_time=time(row.create_time),
        update_time=time(row.update_time),
        expire_time=time(row.expire_time),
        file_name=row.file_name,
        versions=[_version(version) for version in row.versions],
        route=envelope_pb.Route.FromString(row.route),
        traffic=pb.Traffic.FromString(row.traffic),
    )
    raised = {want.part_id for want in row.wants}
    if row.state is State.AWAITING_PARTS:
        parts = (part for part in row.parts if part.part_id not in raised)
        message.wants.extend(_want(part) for part in parts if part.received < part.size)
    for raised_want in row.wants:
        group = message.wants if raised_want.state is WantState.OPEN else message.past_wants
        group.append(want(raised_want))
    if row.pages:
        message.progress.pages_done, message.progress.pages = row.pages_done, row.pages
    if row.digest is not None:
        digest = row.digest
        message.digest.CopyFrom(
            pb.Digest(
                device=digest.device,
                headline=digest.headline,
                pages=digest.pages,
                doubts=digest.doubts,
                weight=digest.weight / 1000,
            )
        )
    if row.error is not None:
        message.error.CopyFrom(status_pb2.Status.FromString(row.error))
    return message


def want(row: WantRow) -> pb.Want:
    """Something that was asked of the device after its envelope."""
    message = pb.Want.FromString(row.message)
    message.received = row.received
    message.state = pb.Want.State.Value(f"STATE_{row.state.value}")
    if row.refusal is not None:
        message.refusal.CopyFrom(pb.Notice.FromString(row.refusal))
    return message


def event(row: EventRow, resume_token: str) -> event_pb.Event:
    """An event."""
    return event_pb.Event(
        event_id=row.event_id,
        sequence=row.sequence,
        resume_token=resume_token,
        type=event_number(row.type),
        create_time=time(row.create_time),
        analysis_id=row.analysis_id,
        document_id=row.document_id,
        state=state_number(row.state),
        version=row.version,
        progress=pb.PageProgress(pages_done=row.pages_done, pages=row.pages) if row.pages else None,
    )


def state_number(state: State) -> pb.Analysis.State.ValueType:
    """The wire's number of a state."""
    return pb.Analysis.State.Value(f"STATE_{state.value}")


def event_number(kind: EventType) -> event_pb.Event.Type.ValueType:
    """The wire's number of an event type."""
    return event_pb.Event.Type.Value(f"TYPE_{kind.value}")


def time(microseconds: int) -> Timestamp:
    """A stored time."""
    return Timestamp(seconds=microseconds // 1_000_000, nanos=microseconds % 1_000_000 * 1000)


def page_size(asked: int) -> int:
    """How many to give (AIP-158): 0 means the default, too many means the maximum.

    Raises:
        InputError: It is negative.
    """
    if asked < 0:
        raise InputError(f"page_size is {asked}", remedy="give 1..100, or 0 for the default", field="page_size")
    return min(asked, _PAGE_MAXIMUM) or _PAGE_SIZE


def page_token(row_time: int, row_id: str, name: str = "") -> str:
    """The token for the page after this row, of the list of that name."""
    return base64.urlsafe_b64encode(f"2:{name}:{row_time}:{row_id}".encode()).decode()


def cut(
    rows: Sequence[Row], size: int, place: Callable[[Row], tuple[int, str]], name: str = ""
) -> tuple[Sequence[Row], str]:
    """A page of `size` from rows of which one more was asked for, and the token of the next; empty if this is the last.

    Args:
        place: Where a row stands in the list.
        name: Of the list.
    """
    shown = rows[:size]
    return shown, page_token(*place(shown[-1]), name) if len(rows) > size else ""


def after_token(token: str, name: str = "") -> tuple[int, str] | None:
    """The row a page token stands for; None for the first page.

    Raises:
        InputError: It is no token of ours, or one of another list.
    """
    if not token:
        return None
    try:
        version, listed, row_time, row_id = base64.urlsafe_b64decode(token.encode()).decode().split(":")
        if version == "2" and listed == name and row_time.isdecimal() and len(row_time) <= 18:
            return int(row_time), row_id
    except (binascii.Error, ValueError):
        pass
    raise InputError(
        "the page token is of no list like this one",
        remedy="give the one from the answer before, with the same conditions and order",
        field="page_token",
    )


def _version(row: VersionRow) -> pb.Version:
    version = pb.Version(version=row.version, engine=row.engine, create_time=time(row.create_time))
    if row.interpretation:
        version.interpretation.CopyFrom(pb.Interpretation.FromString(row.interpretation))
    return version


def _want(row: PartRow) -> pb.Want:
    part = envelope_pb.Part.FromString(row.announcement)
    want = pb.Want(part_id=part.part_id, kind=part.kind, page=part.page, received=row.received)
    if part.HasField("box"):
        want.box.CopyFrom(part.box)
    return want
