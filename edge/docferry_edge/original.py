"""Packing a file as it is, unread: what is left when no reader gets through it."""

from __future__ import annotations

from docferry.upload import original_envelope
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry_edge.desk import Identity, Packed
from docferry_edge.entry import OutboxPart


def pack_original(identity: Identity, data: bytes) -> Packed:
    """Pack a file that cannot be read here, as it is."""
    envelope = original_envelope(
        identity.file_name, data, request_id=identity.request_id, effort=envelope_pb2.EFFORT_AUTO
    )
    envelope.document_id = identity.document_id
    del envelope.route.reasons[:]
    envelope.route.reasons.add(code="READER_STOPPED", detail="reading it stopped the reader: sent as it is")
    parts = () if envelope.parts[0].data else (OutboxPart(envelope.parts[0].part_id, data),)
    request = analysis_service_pb2.SubmitRequest(envelope=envelope)
    return Packed(request.SerializeToString(), parts, {})
