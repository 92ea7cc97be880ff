"""The same content once more: its key, and what to say of an answer that was made before."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

from docferry.v1 import analysis_pb2
from docferry.v1 import envelope_pb2 as pb


def content_key(envelope: pb.Envelope, engine: str) -> bytes:
    """SHA-256 of all that an answer depends on: readings, every picture's hash, route, effort, engine and release.

    What belongs to one submission (its ids, its time, its file's name) does not count.

    Args:
        envelope: As it was submitted. Announced parts count by their hashes, which were checked as they came.
        engine: Its name; the release counts too, as it fixes the models.
    """
    same = pb.Envelope()
    same.CopyFrom(envelope)
    same.request_id = same.document_id = same.file_name = ""
    same.ClearField("capture_time")
    digest = hashlib.sha256(f"{engine} {version('docferry')}\n".encode())
    digest.update(same.SerializeToString(deterministic=True))
    return digest.digest()


def said_before(analysis_id: str) -> analysis_pb2.Notice:
    """What to say of an answer that was taken from another analysis."""
    detail = f"exactly this content was read before: the answer is that of analysis {analysis_id}"
    return analysis_pb2.Notice(code="READ_BEFORE", detail=detail)
