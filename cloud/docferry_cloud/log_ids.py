"""The ids that log lines about an analysis carry."""

from __future__ import annotations

from docferry.tracing import trace_id


def ids_of(analysis_id: str, document_id: str, tenant: str = "") -> dict[str, str]:
    """What log lines about an analysis carry. The tenant by its name: operators gave it, it is no secret."""
    return {
        "analysis_id": analysis_id,
        "document_id": document_id,
        "tenant": tenant,
        "trace_id": trace_id(document_id),
    }
