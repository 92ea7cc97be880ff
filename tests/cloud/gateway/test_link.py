"""What of a request goes on to the service, and what does not."""

import pytest
from starlette.datastructures import Headers

from docferry.errors import Unauthenticated
from docferry_cloud.gateway.link import metadata_of

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_key_and_the_trace_go_on_word_for_word_and_nothing_else_does() -> None:
    headers = Headers(
        {"authorization": "Bearer abc", "traceparent": TRACE, "tracestate": "a=1", "x-forwarded-for": "1"}
    )
    assert metadata_of(headers) == (("authorization", "Bearer abc"), ("traceparent", TRACE), ("tracestate", "a=1"))


@pytest.mark.parametrize("given", ["Bearer \xe9", "Bearer " + "x" * 5000, "Bearer a\tb"])
def test_what_cannot_be_a_token_is_refused_before_grpc_chokes_on_it(given: str) -> None:
    with pytest.raises(Unauthenticated):
        metadata_of(Headers(raw=[(b"authorization", given.encode("latin-1"))]))


def test_a_trace_that_cannot_be_one_is_left_out() -> None:
    assert metadata_of(Headers(raw=[(b"traceparent", b"\xff"), (b"tracestate", b"x" * 513)])) == ()
