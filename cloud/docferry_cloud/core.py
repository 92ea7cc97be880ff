"""What a front end and a worker have in common: one database, one object store, and what is kept in them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from docferry.channel import LinkTimes
from docferry.metrics import Metrics
from docferry.tracing import Tell, Traces, open_traces, untold
from docferry_cloud import webhook_format
from docferry_cloud.blob_list import BlobList
from docferry_cloud.blobs import Blobs, open_blobs
from docferry_cloud.database import Database
from docferry_cloud.deepen_list import DeepenList
from docferry_cloud.event_log import EventLog
from docferry_cloud.metrics import cloud_metrics
from docferry_cloud.retention import Retention
from docferry_cloud.rows import Limits
from docferry_cloud.settings import CloudSettings
from docferry_cloud.store import Store
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.threads import Threads
from docferry_cloud.want_list import WantList
from docferry_cloud.watch import WatchTimes
from docferry_cloud.work import WorkList

_BLOB_THREADS = 4
"""Apart from the database's: an object store that is slow must not keep acknowledgements waiting."""


@dataclass(frozen=True, slots=True)
class Times:
    """Everything that has a rhythm, in seconds; the defaults are for service, shorter ones for tests.

    Attributes:
        drain: How long calls in progress may take at shutdown, and how long running work.
        health: Between two looks at database and workers.
        hang: After this long without its lease a worker process is taken for hung.
        progress: Between two events of how far a document has come, at least.
        deep_retry: Before the full model is asked again for an answer that it owed.
        webhook_waits: Waits after the first, second, ... failed attempt.
    """

    sweep: SweepTimes = field(default_factory=SweepTimes)
    watch: WatchTimes = field(default_factory=WatchTimes)
    link: LinkTimes = field(default_factory=LinkTimes)
    webhook_waits: tuple[float, ...] = webhook_format.RETRY_SECONDS
    drain: float = 10.0
    health: float = 2.0
    hang: float = 30.0
    progress: float = 1.0
    deep_retry: float = 5.0


@dataclass(frozen=True, slots=True)
class Core:
    """The stores of one process. `owner` names the process; no other has or had that name."""

    owner: str
    database: Database
    log: EventLog
    blobs: Blobs
    blob_list: BlobList
    blob_threads: Threads
    store: Store
    retention: Retention
    wants: WantList
    work: WorkList
    deepenings: DeepenList
    metrics: Metrics
    traces: Traces | None

    @property
    def tell(self) -> Tell:
        """Takes spans."""
        return untold if self.traces is None else self.traces.tell


def make_core(settings: CloudSettings) -> Core:
    """The stores that the settings name; nothing is connected to yet.

    Raises:
        ConfigurationError: A URL is none, or the folder cannot be made.
    """
    folder = settings.directory
    database = database_of(settings)
    log = EventLog(database)
    blobs = open_blobs(settings.blobs, folder / "blobs", settings.blobs_endpoint)
    limits = Limits(
        settings.queue_limit,
        settings.tenant_limit,
        settings.retention_days,
        settings.documents_per_day,
        settings.mb_per_day,
    )
    # The host and the pid would do until a pid is used again.
    owner = f"cloud-{uuid.uuid4()}"
    return Core(
        owner=owner,
        database=database,
        log=log,
        blobs=blobs,
        blob_list=BlobList(database, blobs),
        blob_threads=Threads(_BLOB_THREADS, "docferry-blobs"),
        store=Store(database, log, blobs, limits),
        retention=Retention(database, log, settings.retention_days),
        wants=WantList(database, log, request_s=settings.request_s),
        work=WorkList(database, log, owner),
        deepenings=DeepenList(database, log, owner),
        metrics=cloud_metrics(database),
        traces=open_traces(settings.tracing_endpoint, "docferry-cloud"),
    )


def database_of(settings: CloudSettings) -> Database:
    """The database that the settings name; nothing is connected to yet.

    Raises:
        ConfigurationError: The URL is none.
    """
    place = settings.database or settings.directory / "store.sqlite"
    return Database(place, min_free_bytes=settings.min_free_bytes)
