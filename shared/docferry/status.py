"""The one place where errors become gRPC statuses and statuses become errors (AIP-193)."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf import duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2

from docferry import errors

DOMAIN = "docferry"
_LONGEST = 400

_CODES: dict[type[errors.DocferryError], grpc.StatusCode] = {
    errors.DocferryError: grpc.StatusCode.INTERNAL,
    errors.InputError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnreadableImage: grpc.StatusCode.INVALID_ARGUMENT,
    errors.ImageTooLarge: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.TooFewLabels: grpc.StatusCode.INVALID_ARGUMENT,
    errors.ConfigurationError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ModelError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.EnvelopeError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.EnvelopeTooLarge: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnsupportedVersion: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Conflict: grpc.StatusCode.ALREADY_EXISTS,
    errors.Outdated: grpc.StatusCode.ABORTED,
    errors.PixelsUnavailable: grpc.StatusCode.FAILED_PRECONDITION,
    errors.HistoryGone: grpc.StatusCode.OUT_OF_RANGE,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    errors.Unimplemented: grpc.StatusCode.UNIMPLEMENTED,
    errors.Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.TooLate: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.EngineError: grpc.StatusCode.INTERNAL,
    errors.ReaderStopped: grpc.StatusCode.INTERNAL,
}
_BY_REASON: dict[str, type[errors.DocferryError]] = {error.code: error for error in _CODES}

# What a status without our ErrorInfo means: it comes from gRPC itself or from a proxy on the way, so it says nothing
# about the request. None of these may condemn a document.
_BY_CODE: dict[grpc.StatusCode, tuple[type[errors.DocferryError], str]] = {
    grpc.StatusCode.UNAVAILABLE: (errors.Unavailable, "check the address and that the service is running"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (errors.Unavailable, "try again; the link or the service is slow"),
    grpc.StatusCode.NOT_FOUND: (errors.Unavailable, "check the address: something else answers there"),
    grpc.StatusCode.UNAUTHENTICATED: (errors.Unauthenticated, "check the token"),
    grpc.StatusCode.PERMISSION_DENIED: (errors.Unauthenticated, "check the token"),
    grpc.StatusCode.UNIMPLEMENTED: (errors.Unimplemented, "update the service, or check the address"),
}
_DETAILS_KEY = "grpc-status-details-bin"


def status_of(error: errors.DocferryError) -> status_pb2.Status:
    """The `google.rpc.Status` of an error: ErrorInfo always, RetryInfo or BadRequest where they fit."""
    metadata = {key: _short(value) for key, value in error.metadata.items()}
    if error.remedy:
        metadata["remedy"] = _short(error.remedy)
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=error.code, domain=DOMAIN, metadata=metadata)]
    if isinstance(error, errors.Overloaded):
        details.append(error_details_pb2.RetryInfo(retry_delay=_duration(error.retry_after)))
    if isinstance(error, (errors.EnvelopeError, errors.InputError)) and "field" in error.metadata:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=metadata["field"], description=_short(error.reason)
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    status = status_pb2.Status(code=_number(code_of(error)), message=_short(str(error)))
    for detail in details:
        status.details.add().Pack(detail)
    return status


def code_of(error: errors.DocferryError) -> grpc.StatusCode:
    """The gRPC code of an error; a subclass without an entry of its own takes its parent's."""
    return next(_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: errors.DocferryError) -> NoReturn:
    """End a call with the error's status."""
    trailer = ((_DETAILS_KEY, status_of(error).SerializeToString()),)
    await context.abort(code_of(error), _short(str(error)), trailing_metadata=trailer)
    raise AssertionError("abort returned")  # `abort` always raises


def error_of(status: status_pb2.Status) -> errors.DocferryError:
    """The error a stored or received `google.rpc.Status` stands for."""
    info = error_details_pb2.ErrorInfo()
    retry = error_details_pb2.RetryInfo()
    delay: float | None = None
    for detail in status.details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            delay = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    kind = _BY_REASON.get(info.reason, errors.DocferryError)
    metadata = dict(info.metadata)
    remedy = metadata.pop("remedy", "")
    reason = status.message.removesuffix(f" ({remedy})") if remedy else status.message
    if issubclass(kind, errors.Overloaded):
        return kind(reason, retry_after=1.0 if delay is None else delay, remedy=remedy, **metadata)
    return kind(reason, remedy=remedy, **metadata)


def error_from_rpc(failure: grpc.aio.AioRpcError) -> errors.DocferryError:
    """The error a failed call stands for, whoever ended it."""
    for key, value in failure.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                return error_of(status_pb2.Status.FromString(bytes(value)))  # type: ignore[arg-type]
            except DecodeError:
                break
    reason = f"{failure.code().name}: {failure.details() or 'no details'}"
    if failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return errors.Overloaded(reason, retry_after=1.0)
    kind, remedy = _BY_CODE.get(failure.code(), (errors.DocferryError, "try again; if it stays, see the service's log"))
    return kind(reason, remedy=remedy)


def _short(text: str) -> str:
    """Cut what a peer made long: gRPC carries 8 KiB of metadata, and a longer status would not arrive at all."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _number(code: grpc.StatusCode) -> int:
    return int(code_pb2.Code.Value(code.name))


def _duration(seconds: float) -> duration_pb2.Duration:
    whole = int(seconds)
    return duration_pb2.Duration(seconds=whole, nanos=int((seconds - whole) * 1e9))
