"""Health for those who balance load: everyone may ask, so what it may take up is bounded."""

from __future__ import annotations

from typing import Any

import grpc.aio
from grpc_health.v1 import health_pb2  # type: ignore[import-untyped]
from grpc_health.v1.health import aio as health_aio  # type: ignore[import-untyped]

from docferry.errors import Overloaded
from docferry.status import abort

MOST_WATCHERS = 16
"""A Watch has no end and carries no key: without a bound, strangers could take every call that the server allows."""


class Health(health_aio.HealthServicer):  # type: ignore[misc]
    """`grpc.health.v1.Health` with a bound on its streams."""

    def __init__(self) -> None:
        super().__init__()
        self._watching = 0

    async def Watch(  # noqa: N802 - the contract's name
        self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        """Tell of every change.

        Raises:
            Overloaded: `MOST_WATCHERS` watch already; `Check` still answers.
        """
        if self._watching >= MOST_WATCHERS:
            await abort(context, Overloaded(f"{MOST_WATCHERS} watch already", retry_after=5, remedy="call Check"))
        self._watching += 1
        try:
            await super().Watch(request, context)
        finally:
            self._watching -= 1
