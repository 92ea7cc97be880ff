"""The store without a service around it, and a clock that stands."""

import hashlib
import itertools
import uuid
from dataclasses import dataclass, field

from docferry_cloud.blobs import memory_blobs
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.retention import Retention
from docferry_cloud.rows import Caller as Identity
from docferry_cloud.rows import Limits, NewPart, Submission
from docferry_cloud.schema import State
from docferry_cloud.store import Store
from docferry_cloud.work import WorkList


@dataclass
class World:
    """A store in a folder, and a clock that stands until it is moved."""

    database: Database
    caller: Identity = field(default_factory=lambda: Identity("tenant", "kiosk"))
    now: int = 1_800_000_000_000_000
    lane: int = 0
    body: bytes = b"body"
    within_s: float | None = None
    counter: itertools.count = field(default_factory=itertools.count)

    def __post_init__(self):
        self.database.create()
        self.log = EventLog(self.database, self.clock)
        self.log.open()
        self.blobs = memory_blobs()
        self.retention = Retention(self.database, self.log, 30, self.clock)
        self.store = Store(self.database, self.log, self.blobs, Limits(), self.clock)

    def clock(self) -> int:
        return self.now

    def work(self, owner: str) -> WorkList:
        work = WorkList(self.database, self.log, owner, self.clock)
        work.announce_alive(10)
        return work

    def submission(self, *announced: NewPart) -> Submission:
        number = next(self.counter)
        return Submission(
            caller=self.caller,
            request_id=str(uuid.UUID(int=number)),
            document_id=str(uuid.uuid4()),
            body=self.body,
            body_sha256=hashlib.sha256(self.body).digest(),
            file_name="a.jpg",
            effort=0,
            route=b"",
            traffic=b"",
            announced=announced,
            edge=None,
            within_s=self.within_s,
            lane=self.lane,
        )

    def take(self, *announced: NewPart) -> str:
        return self.store.take(self.submission(*announced)).analysis_id

    def state(self, analysis_id: str) -> State:
        return self.store.get(self.caller.tenant, analysis_id=analysis_id).state

    def events(self, analysis_id: str) -> list[str]:
        return [row.type.value for row in self.log.read("tenant", 0, self.log.latest(), 100, analysis_id)]
