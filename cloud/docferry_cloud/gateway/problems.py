"""The one place where errors and statuses become HTTP answers (AIP-193; codes as grpc-gateway maps them)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from docferry.errors import DocferryError, InputError
from docferry.status import error_from_rpc, status_of

Tree = dict[str, Any]

_HTTP = {
    code_pb2.OK: 200,
    code_pb2.CANCELLED: 499,
    code_pb2.INVALID_ARGUMENT: 400,
    code_pb2.DEADLINE_EXCEEDED: 504,
    code_pb2.NOT_FOUND: 404,
    code_pb2.ALREADY_EXISTS: 409,
    code_pb2.PERMISSION_DENIED: 403,
    code_pb2.UNAUTHENTICATED: 401,
    code_pb2.RESOURCE_EXHAUSTED: 429,
    code_pb2.FAILED_PRECONDITION: 400,
    code_pb2.ABORTED: 409,
    code_pb2.OUT_OF_RANGE: 400,
    code_pb2.UNIMPLEMENTED: 501,
    code_pb2.UNAVAILABLE: 503,
}
_DETAILS_KEY = "grpc-status-details-bin"


class Refused(Exception):
    """A request that HTTP itself has a code for.

    Args:
        code: The HTTP code.
    """

    def __init__(self, code: int, error: DocferryError, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(error))
        self.code = code
        self.error = error
        self.headers = dict(headers or {})


def rpc_status(failure: grpc.aio.AioRpcError) -> status_pb2.Status:
    """The status a failed call ended with, as it was sent."""
    for key, value in failure.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                return status_pb2.Status.FromString(bytes(value))  # type: ignore[arg-type]
            except DecodeError:
                break
    return status_of(error_from_rpc(failure))


def status_and_code(failure: Exception) -> tuple[status_pb2.Status, int, dict[str, str]]:
    """Status, HTTP code and extra headers of a failure that is told on purpose."""
    headers: dict[str, str] = {}
    code = 0
    if isinstance(failure, grpc.aio.AioRpcError):
        status = rpc_status(failure)
    elif isinstance(failure, Refused):
        status, code, headers = status_of(failure.error), failure.code, failure.headers
    elif isinstance(failure, DocferryError):
        status = status_of(failure)
    else:
        raise TypeError(f"{type(failure).__name__} is no failure to tell") from failure
    code = code or _HTTP.get(status.code, 500)
    if code == 401:
        headers.setdefault("www-authenticate", "Bearer")
    if (delay := retry_after(status)) is not None:
        headers.setdefault("retry-after", str(math.ceil(delay)))
    return status, code, headers


def retry_after(status: status_pb2.Status) -> float | None:
    """Seconds of the status's RetryInfo, if it has one."""
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(retry):
            return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)
    return None


def reason_and_remedy(status: status_pb2.Status) -> tuple[str, str]:
    """What its ErrorInfo says."""
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            return info.reason, info.metadata.get("remedy", "")
    return "", ""


def problem_tree(status: status_pb2.Status, code: int) -> Tree:
    """The JSON body of an error: `{"error": {code, status, message, reason, remedy, details}}`."""
    reason, remedy = reason_and_remedy(status)
    return {
        "error": {
            "code": code,
            "status": code_pb2.Code.Name(status.code) if status.code in code_pb2.Code.values() else "UNKNOWN",
            "message": status.message,
            "reason": reason,
            "remedy": remedy,
            "details": _details(status),
        }
    }


async def told(_: Request, failure: Exception) -> Response:
    """The answer to a request that failed on purpose."""
    status, code, headers = status_and_code(failure)
    return JSONResponse(problem_tree(status, code), code, headers)


async def no_such_route(request: Request, failure: Exception) -> Response:
    """404 and 405 of the router, in the shape of every other error."""
    if not isinstance(failure, HTTPException):
        raise TypeError("only the router's own exceptions come here") from failure
    if failure.status_code == 404:
        error = InputError(f"{request.method} {request.url.path[:200]} is not there", remedy="see /openapi.json")
        status = status_of(error)
        status.code = code_pb2.NOT_FOUND
    else:
        reason = f"{request.method} {request.url.path[:200]}: {failure.detail}"
        status = status_of(InputError(reason, remedy="see /openapi.json"))
    return JSONResponse(problem_tree(status, failure.status_code), failure.status_code, dict(failure.headers or {}))


async def gone(_: Request, __: Exception) -> Response:
    """Nobody reads this; the code is for logs."""
    return Response(status_code=499)


def _details(status: status_pb2.Status) -> list[Any]:
    try:
        tree: Tree = json.loads(json_format.MessageToJson(status))
    except (TypeError, json_format.Error):
        # A detail of a kind that this release does not know.
        return []
    return list(tree.get("details", ()))


HANDLERS = {
    grpc.aio.AioRpcError: told,
    DocferryError: told,
    Refused: told,
    HTTPException: no_such_route,
    ClientDisconnect: gone,
}
"""Exception handlers of the application."""
