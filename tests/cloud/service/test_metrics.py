"""What Prometheus scrapes: numbers on a real socket after real calls, and what is read from the store."""

import asyncio
import socket
from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from docferry.errors import ConfigurationError
from docferry.v1 import envelope_pb2
from docferry.v1 import subscription_service_pb2 as subscription_pb
from docferry_cloud.database import Database
from docferry_cloud.metrics import TABLE, cloud_metrics
from tests.cloud.service.running import QUICK


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def scraped(port: int) -> dict[tuple[str, str], float]:
    """Every series by its name and its labels' values."""
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, ",".join(value for name, value in sample.labels.items() if name != "le")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scrape_tells_what_really_happened(
    tmp_path, running, database_url, make_envelope, make_part, large_picture, receiver, until
):
    port = free_port()
    # Health holds as long as the lease, and a busy machine may well forget this process for a second.
    times = replace(QUICK, sweep=replace(QUICK.sweep, lease=60.0))
    settings = {"metrics_port": port, "database": database_url(), "remember": True, "times": times}
    async with running(tmp_path, **settings) as service:
        caller = service.caller()
        subscription = subscription_pb.Subscription(url=receiver.url)
        await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=subscription))
        watching = asyncio.create_task(caller.events(lambda event: event.state == 4 and event.version == 2))
        await until(lambda: service.server.metrics.value("docferry_watchers") == 1)
        route = envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_OVERVIEW, risk=0.015, target_risk=0.02)
        envelope = make_envelope(route=route)
        await caller.submit(envelope)
        await watching
        await caller.submit(envelope)
        again = make_envelope(route=route)
        again.structure.CopyFrom(envelope.structure)
        await caller.finished((await caller.submit(again)).analysis_id)
        part = make_part(large_picture, kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False)
        waits = await caller.submit(make_envelope(parts=[part], structure=None))
        await until(lambda: service.server.metrics.value("docferry_delivery_attempts_total", outcome="received") == 5)
        await until(lambda: service.server.metrics.value("docferry_healthy") == 1)
        seen = await scraped(port)
        assert seen["docferry_submit_seconds_count", "new"] == 3
        assert seen["docferry_submit_seconds_count", "repeated"] == 1
        assert seen["docferry_submit_seconds_count", "refused"] == 0
        assert 0 < seen["docferry_submit_seconds_sum", "new"] < 60
        assert seen["docferry_queue_wait_seconds_count", ""] == 2
        assert seen["docferry_interpret_seconds_count", "succeeded"] == 2
        assert seen["docferry_cache_lookups_total", "hit"] == 1
        assert seen["docferry_cache_lookups_total", "miss"] == 1
        assert seen["docferry_routes_total", "overview"] == 2
        assert seen["docferry_original_bytes_total", ""] == 3000
        assert seen["docferry_sent_bytes_total", "submit"] > 100
        assert seen["docferry_predicted_risk_count", ""] == 2
        assert seen["docferry_predicted_risk_sum", ""] == pytest.approx(0.03)
        assert seen["docferry_event_lag_seconds_count", ""] >= 2
        assert seen["docferry_delivery_seconds_count", ""] == 5
        assert seen["docferry_healthy", ""] == 1
        assert seen["docferry_database_up", ""] == 1
        assert seen["docferry_queue_analyses", "awaiting_parts"] == 1
        assert seen["docferry_queue_analyses", "pending"] == 0
        assert seen["docferry_queue_oldest_seconds", ""] == 0
        assert seen["docferry_deliveries_waiting", ""] == 0
        assert seen["process_resident_memory_bytes", ""] > 1_000_000
        before = seen["docferry_sent_bytes_total", "supply"]
        await caller.supply(waits.analysis_id, part, large_picture)
        assert (await scraped(port))["docferry_sent_bytes_total", "supply"] - before > len(large_picture)
    with pytest.raises(httpx.ConnectError):
        await scraped(port)


async def test_a_taken_port_is_said_with_its_setting(tmp_path, running):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ConfigurationError, match="cannot be bound for metrics") as raised:
            async with running(tmp_path, metrics_port=other.getsockname()[1]):
                pass
    assert "metrics.port" in raised.value.remedy


def test_the_queue_is_told_from_the_store_and_not_at_all_while_it_is_away(world, postgres):
    metrics = cloud_metrics(world.database)
    world.take()
    assert metrics.value("docferry_queue_analyses", state="pending") == 1
    assert metrics.value("docferry_queue_oldest_seconds") is not None
    away = Database("postgresql://nobody@127.0.0.1:1/none")
    metrics = cloud_metrics(away)
    assert metrics.value("docferry_database_up") == 0
    assert metrics.value("docferry_queue_analyses", state="pending") is None
    away.close()


def test_no_label_takes_a_value_that_is_not_stated(world):
    metrics = cloud_metrics(world.database)
    with pytest.raises(ValueError, match="no series"):
        metrics.count("docferry_routes_total", "tenant-7")
    with pytest.raises(ValueError, match="no series"):
        metrics.count("docferry_routes_total")


def test_names_follow_the_conventions():
    for metric in TABLE:
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert not metric.name.endswith(("_ms", "_mb", "_kb")), metric.name
        assert not {"tenant", "device", "id", "analysis_id"} & set(metric.labels or ()), metric.name
