"""What the cloud service measures of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import sqlalchemy as sa

from docferry.errors import DocferryError
from docferry.metrics import RISKS, Metric, Metrics, Sample
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry_cloud.database import Database, wall_clock
from docferry_cloud.rows import Submission
from docferry_cloud.schema import OPEN_STATES, State, analyses, deliveries

DECISIONS = tuple(name.removeprefix("ROUTE_DECISION_").lower() for name in envelope_pb.RouteDecision.keys())  # noqa: SIM118

TABLE: tuple[Metric, ...] = (
    Metric(
        "docferry_submit_seconds",
        "histogram",
        "From a Submit's arrival to its durable acknowledgement",
        {"outcome": ("new", "repeated", "refused")},
    ),
    Metric("docferry_queue_wait_seconds", "histogram", "From when all of an analysis is here to its work's beginning"),
    Metric(
        "docferry_interpret_seconds",
        "histogram",
        "One analysis's work: `asked` waits for pictures, `released` was given back, cancelled or taken over",
        {"outcome": ("succeeded", "failed", "asked", "released")},
    ),
    Metric("docferry_event_lag_seconds", "histogram", "From a live event's storing to its hand-over to a watcher"),
    Metric("docferry_delivery_seconds", "histogram", "From an event's storing to a receiver's 2xx, retries included"),
    Metric(
        "docferry_delivery_attempts_total",
        "counter",
        "Attempts: `gone` is a webhook's 410, `gave_up` the last of all, `unsubscribed` a browser that wants no more",
        {"outcome": ("received", "failed", "gone", "gave_up", "unsubscribed")},
    ),
    Metric(
        "docferry_cache_lookups_total",
        "counter",
        "Whether exactly the same content had been read before",
        {"result": ("hit", "miss")},
    ),
    Metric("docferry_routes_total", "counter", "New analyses by what left the device", {"decision": DECISIONS}),
    Metric("docferry_original_bytes_total", "counter", "Size of what was captured, of new analyses"),
    Metric(
        "docferry_sent_bytes_total",
        "counter",
        "Serialized requests that brought new analyses, and parts (sent again included); saved is original less sent",
        {"rpc": ("submit", "supply")},
    ),
    Metric(
        "docferry_predicted_risk",
        "histogram",
        "Risk that the device stated with a route, 0..1, where it stated a target",
        buckets=RISKS,
    ),
    Metric("docferry_worker_starts_total", "counter", "Starts of this front end's worker process, recycling included"),
    Metric("docferry_watchers", "gauge", "Watch streams that are open here"),
    Metric("docferry_healthy", "gauge", "1 if the model is loaded, a worker alive and the database there"),
    Metric(
        "docferry_database_up", "gauge", "1 if the database answered just now; else the four below are not shown",
        looked_up=True,
    ),
    Metric(
        "docferry_queue_analyses",
        "gauge",
        "Unfinished analyses of all processes",
        {"state": tuple(state.lower() for state in OPEN_STATES)},
        looked_up=True,
    ),
    Metric(
        "docferry_queue_oldest_seconds",
        "gauge",
        "Age of the oldest analysis that waits for work; 0 if none does",
        looked_up=True,
    ),
    Metric("docferry_deliveries_waiting", "gauge", "Deliveries that no receiver has taken yet", looked_up=True),
    Metric(
        "docferry_deliveries_attempted", "gauge", "Those of them that were attempted in vain at least once",
        looked_up=True,
    ),
)  # fmt: skip


def cloud_metrics(database: Database) -> Metrics:
    """The metrics of one process; the queue's are of all processes on its database."""
    return Metrics(TABLE, _look_up(database))


def count_submission(metrics: Metrics, new: Submission) -> None:
    """Count what a new analysis brought."""
    route, traffic = envelope_pb.Route.FromString(new.route), analysis_pb.Traffic.FromString(new.traffic)
    # A number that a later release's device knows and this one does not is not said here.
    metrics.count("docferry_routes_total", DECISIONS[route.decision if route.decision < len(DECISIONS) else 0])
    metrics.count("docferry_original_bytes_total", by=traffic.original_bytes)
    metrics.count("docferry_sent_bytes_total", "submit", by=traffic.sent_bytes)
    if route.target_risk:
        metrics.observe("docferry_predicted_risk", route.risk)


def seconds_since(microseconds: int) -> float:
    """Seconds since a stored time by this machine's clock."""
    return (wall_clock() - microseconds) / 1_000_000


def seconds_since_text(timestamp: str) -> float:
    """The same of an RFC 3339 time."""
    return wall_clock() / 1_000_000 - datetime.fromisoformat(timestamp).timestamp()


def _look_up(database: Database) -> Callable[[], Iterable[Sample]]:
    counted = sa.select(analyses.c.state, sa.func.count(), sa.func.min(analyses.c.update_time)).where(
        analyses.c.state.in_(OPEN_STATES)
    )
    attempted = sa.func.count().filter(deliveries.c.attempts > 0)
    waiting = sa.select(sa.func.count(), attempted).select_from(deliveries).where(deliveries.c.dead_time == 0)

    def look_up() -> Iterable[Sample]:
        try:
            with database.read() as connection:
                states = connection.execute(counted.group_by(analyses.c.state)).all()
                posts, tried = connection.execute(waiting).one()
            now = database.now()
        except DocferryError:
            return [("docferry_database_up", (), 0.0)]
        counts = {state: count for state, count, _ in states}
        since = {state: oldest for state, _, oldest in states}.get(State.PENDING)
        queue: list[Sample] = [
            ("docferry_queue_analyses", (state.lower(),), counts.get(state, 0)) for state in OPEN_STATES
        ]
        return [
            ("docferry_database_up", (), 1.0),
            *queue,
            ("docferry_queue_oldest_seconds", (), 0.0 if since is None else max(0.0, (now - since) / 1_000_000)),
            ("docferry_deliveries_waiting", (), posts),
            ("docferry_deliveries_attempted", (), tried),
        ]

    return look_up
