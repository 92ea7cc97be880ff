"""Every error has a gRPC status, and comes back from it as itself."""

import grpc
import pytest
from google.rpc import error_details_pb2

from docferry import errors
from docferry.status import code_of, error_of, status_of


def every_error() -> list[type[errors.DocferryError]]:
    found, queue = [], [errors.DocferryError]
    while queue:
        kind = queue.pop()
        found.append(kind)
        queue += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == "docferry.errors"]


def make(kind: type[errors.DocferryError]) -> errors.DocferryError:
    extra = {"retry_after": 2.5} if issubclass(kind, errors.Overloaded) else {}
    return kind("the thing is wrong", remedy="do the other thing", field="parts[0]", **extra)


@pytest.mark.parametrize("kind", every_error())
def test_an_error_survives_the_wire(kind: type[errors.DocferryError]) -> None:
    error = make(kind)
    back = error_of(status_of(error))
    assert type(back) is kind
    assert (back.reason, back.metadata["field"]) == (error.reason, "parts[0]")
    assert back.remedy == error.remedy
    assert getattr(back, "retry_after", None) == getattr(error, "retry_after", None)


@pytest.mark.parametrize("kind", every_error())
def test_every_status_carries_an_error_info_once(kind: type[errors.DocferryError]) -> None:
    status = status_of(make(kind))
    infos = [detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo()
    infos[0].Unpack(info)
    assert (info.reason, info.domain) == (kind.code, "docferry")
    assert len({detail.TypeName() for detail in status.details}) == len(status.details)
    assert status.code == code_of(make(kind)).value[0]


def test_reasons_are_unique_and_upper_snake_case() -> None:
    codes = [kind.code for kind in every_error()]
    assert len(set(codes)) == len(codes)
    assert all(code.replace("_", "").isalpha() and code.isupper() and len(code) <= 63 for code in codes)


def test_only_what_may_succeed_later_is_marked_retryable() -> None:
    retryable = {kind.code for kind in every_error() if kind.retryable}
    assert retryable == {"OVERLOADED", "STORAGE_FULL", "UNAVAILABLE"}


def test_a_status_from_somewhere_else_still_reads() -> None:
    from google.rpc import status_pb2

    error = error_of(status_pb2.Status(code=grpc.StatusCode.INTERNAL.value[0], message="proxy failed"))
    assert type(error) is errors.DocferryError
    assert error.reason == "proxy failed"


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None
    for kind in every_error():
        assert kind.__name__ in errors.__doc__


def test_a_status_stays_small_enough_to_arrive_whatever_a_peer_sent() -> None:
    error = errors.EnvelopeError("x" * 100_000, remedy="y" * 100_000, field="ü" * 100_000)
    assert len(status_of(error).SerializeToString()) < 4096
