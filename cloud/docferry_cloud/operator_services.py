"""`OperatorService`: sessions, keys, devices and figures of the caller's tenant."""

# The rpc names are the contract's, and what a method does not need it still is given.
# ruff: noqa: N802, ARG002

from __future__ import annotations

from collections.abc import Iterable

from docferry.errors import InputError
from docferry.v1 import operator_service_pb2 as pb
from docferry.v1 import operator_service_pb2_grpc as operator_grpc
from docferry_cloud import resources
from docferry_cloud.access.gate import Gate
from docferry_cloud.access.keys import Key, Keys
from docferry_cloud.access.rules import Scope
from docferry_cloud.access.sessions import Sessions
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Database
from docferry_cloud.operations import Operations
from docferry_cloud.reviewed import Reviewed
from docferry_cloud.rows import Caller
from docferry_cloud.service import Service
from docferry_cloud.services import Servicer, answered

_DAYS, _MOST_DAYS, _MOST_KEYS = 30, 90, 1000


class OperatorServicer(Servicer, operator_grpc.OperatorServiceServicer):
    """`OperatorService`."""

    SERVICE = pb.DESCRIPTOR.services_by_name["OperatorService"].full_name

    def __init__(self, service: Service, gate: Gate, database: Database, keys: Keys) -> None:
        super().__init__(service, gate)
        self._database = database
        self._keys = keys
        self._sessions = Sessions(database)
        self._operations = Operations(database)
        self._reviewed = Reviewed(database)

    @answered
    async def OpenSession(self, request: pb.OpenSessionRequest, caller: Caller) -> pb.OpenSessionResponse:
        """Trade a key for a session."""
        if caller.session_id or not caller.holder:
            raise InputError(
                "a session is opened with a key; this service needs none, or this is a session already",
                remedy="send the key itself",
            )
        text, until = await self._database.run(self._sessions.open, caller.holder)
        return pb.OpenSessionResponse(token=text, expire_time=resources.time(until))

    @answered
    async def GetSession(self, request: pb.GetSessionRequest, caller: Caller) -> pb.GetSessionResponse:
        """Say who calls."""
        return pb.GetSessionResponse(
            tenant=caller.tenant, who=caller.who, scopes=sorted(caller.scopes), open=not caller.holder
        )

    @answered
    async def CloseSession(self, request: pb.CloseSessionRequest, caller: Caller) -> pb.CloseSessionResponse:
        """End the session that calls."""
        if caller.session_id:
            await self._database.run(self._sessions.close, caller.session_id)
            self.gate.forget(caller.session_id)
        return pb.CloseSessionResponse()

    @answered
    async def GetFigures(self, request: pb.GetFiguresRequest, caller: Caller) -> pb.GetFiguresResponse:
        """Give what became of documents."""
        days = request.days or _DAYS
        if not 0 < days <= _MOST_DAYS:
            raise InputError(f"days is {days}", remedy=f"give 1..{_MOST_DAYS}, or 0 for {_DAYS}", field="days")
        routes, by_day = await self._database.run(self._operations.figures, caller.tenant, days)
        reviewed = await self._database.run(self._reviewed.figures, caller.tenant, days)
        answer = pb.GetFiguresResponse(reviewed_lines=reviewed.lines, reviewed_documents=reviewed.documents)
        for point in reviewed.curve:
            answer.risk_curve.add(coverage=point.coverage, risk=point.risk, predicted=point.predicted)
        for route in routes:
            answer.routes.add(
                decision=route.route,
                documents=route.documents,
                pages=route.pages,
                original_bytes=route.original_bytes,
                sent_bytes=route.sent_bytes,
                cloud_seconds=route.work_ms / 1000,
                risk=route.risk,
            )
        for day in by_day:
            begun = resources.time(day.day * 86400 * MICROSECONDS)
            answer.days.add(
                day=begun, documents=day.documents, escalated=day.escalated, risk=day.risk, doubts=day.doubts
            )
        return answer

    @answered
    async def ListDevices(self, request: pb.ListDevicesRequest, caller: Caller) -> pb.ListDevicesResponse:
        """Give the devices."""
        answer = pb.ListDevicesResponse()
        for row in await self._database.run(self._operations.devices, caller.tenant):
            answer.devices.add(
                device=row.device,
                last_seen_time=resources.time(row.last_seen) if row.last_seen else None,
                documents=row.documents,
                failed=row.failed,
                risk=row.risk,
                open_wants=row.open_wants,
            )
        return answer

    @answered
    async def CreateKey(self, request: pb.CreateKeyRequest, caller: Caller) -> pb.CreateKeyResponse:
        """Issue a key."""
        days = request.valid_for.ToTimedelta().total_seconds() / 86400 if request.HasField("valid_for") else None
        wish = request.key
        key, secret = await self._database.run(
            self._keys.create, caller.tenant, _scopes(wish.scopes), device=wish.device, name=wish.name, days=days
        )
        return pb.CreateKeyResponse(key=_key(key, key.create_time), secret=secret)

    @answered
    async def ListKeys(self, request: pb.ListKeysRequest, caller: Caller) -> pb.ListKeysResponse:
        """Give the keys."""
        rows, now = await self._database.run(
            lambda: (self._keys.newest(caller.tenant, _MOST_KEYS), self._database.now())
        )
        return pb.ListKeysResponse(keys=[_key(row, now) for row in rows])

    @answered
    async def RevokeKey(self, request: pb.RevokeKeyRequest, caller: Caller) -> pb.RevokeKeyResponse:
        """Take a key back."""
        key, now = await self._database.run(
            lambda: (self._keys.revoke(request.key_id, caller.tenant), self._database.now())
        )
        return pb.RevokeKeyResponse(key=_key(key, now))


def _scopes(names: Iterable[str]) -> list[Scope]:
    found = []
    for name in names:
        if name not in set(Scope):
            raise InputError(f"there is no scope {name[:40]!r}", remedy=f"give {', '.join(Scope)}", field="scopes")
        found.append(Scope(name))
    return found


def _key(key: Key, now: int) -> pb.Key:
    message = pb.Key(
        key_id=key.key_id,
        name=key.name,
        # A key that is for no device is its own.
        device="" if key.device == key.key_id else key.device,
        scopes=sorted(key.scopes),
        create_time=resources.time(key.create_time),
        valid=key.valid(now),
    )
    for name, value in (
        ("expire_time", key.expire_time),
        ("revoke_time", key.revoke_time),
        ("last_use_time", key.last_use),
    ):
        if value is not None:
            getattr(message, name).CopyFrom(resources.time(value))
    return message
