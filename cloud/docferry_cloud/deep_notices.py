"""What an answer says of the full model: that it follows, that it is missing, what it took."""

from __future__ import annotations

from docferry.errors import DocferryError
from docferry.v1 import analysis_pb2
from docferry_cloud.engine import Cost

DEEP_FOLLOWS = analysis_pb2.Notice(
    code="DEEP_FOLLOWS", detail="parts of this are in doubt; the full model reads them now and adds a version"
)


def deep_missing(error: DocferryError, *, again: bool = True) -> analysis_pb2.Notice:
    """Of a fast answer that stands in for a deep one. `again`: the full model will be asked once more."""
    follows = "the deep one is added as a version as soon as it can be had" if again else "there will be no deep one"
    return analysis_pb2.Notice(code="DEEP_UNAVAILABLE", detail=f"this is the fast answer: {error.reason}; {follows}")


def cost_of(cost: Cost) -> analysis_pb2.Notice:
    """Of a deep answer: what it took."""
    detail = (
        f"{cost.questions} questions to the full model, {cost.tokens_in} tokens in, {cost.tokens_out} out, "
        f"{cost.seconds:.1f} s"
    )
    return analysis_pb2.Notice(code="DEEP_COST", detail=detail)
