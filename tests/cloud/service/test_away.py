"""A PostgreSQL that goes away and comes back: health says so, callers are told to come again, nothing is lost."""

import re

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from docferry.v1 import analysis_pb2

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def switch(postgres):
    """An empty database's URL, and a switch that cuts it off from everyone or lets them in again."""
    url = postgres()
    name = re.search(r"/(t[0-9a-f]{32})\?", url)[1]
    admin = url.replace(f"/{name}?", "/postgres?")

    def turn(*, on: bool) -> None:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {str(on).lower()}")
            if not on:
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                connection.execute(cut, (name,))

    return url, turn


async def test_a_database_that_goes_away_and_comes_back_costs_nothing_but_time(
    running, tmp_path, switch, make_envelope, until, reason_of
):
    url, turn = switch
    async with running(tmp_path, database=url) as service:
        health, caller = health_pb2_grpc.HealthStub(service.channel), service.caller()

        async def said(status):
            return (await health.Check(health_pb2.HealthCheckRequest())).status == status

        await until(lambda: said(SERVING))
        before = await caller.submit(make_envelope())
        envelope = make_envelope()
        turn(on=False)
        await until(lambda: said(NOT_SERVING))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.submit(envelope)
        assert reason_of(failure.value) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        turn(on=True)
        await until(lambda: said(SERVING))
        after = await caller.submit(envelope)
        for analysis in (before, after):
            assert (await caller.finished(analysis.analysis_id)).state == analysis_pb2.Analysis.STATE_SUCCEEDED
