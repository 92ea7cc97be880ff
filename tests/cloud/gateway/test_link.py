"""What of a request goes on to the service, and what does not."""

import pytest
from starlette.requests import Request

from docferry.errors import Unauthenticated
from docferry_cloud.gateway.link import metadata_of

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def _request(*headers: tuple[bytes, bytes], client: tuple[str, int] | None = None) -> Request:
    return Request({"type": "http", "headers": list(headers), "client": client})


def test_the_key_and_the_trace_go_on_word_for_word_and_nothing_else_does() -> None:
    headers = [(b"authorization", b"Bearer abc"), (b"traceparent", TRACE.encode()), (b"tracestate", b"a=1")]
    found = metadata_of(_request(*headers, (b"x-forwarded-for", b"1"), (b"docferry-called-from", b"elsewhere")))
    assert found == (("authorization", "Bearer abc"), ("traceparent", TRACE), ("tracestate", "a=1"))


def test_the_address_of_the_caller_goes_on_as_the_socket_knows_it() -> None:
    request = _request((b"docferry-called-from", b"elsewhere"), client=("192.0.2.7", 1234))
    assert metadata_of(request) == (("docferry-called-from", "192.0.2.7"),)


@pytest.mark.parametrize("given", ["Bearer \xe9", "Bearer " + "x" * 5000, "Bearer a\tb"])
def test_what_cannot_be_a_token_is_refused_before_grpc_chokes_on_it(given: str) -> None:
    with pytest.raises(Unauthenticated):
        metadata_of(_request((b"authorization", given.encode("latin-1"))))


def test_a_trace_that_cannot_be_one_is_left_out() -> None:
    assert metadata_of(_request((b"traceparent", b"\xff"), (b"tracestate", b"x" * 513))) == ()
