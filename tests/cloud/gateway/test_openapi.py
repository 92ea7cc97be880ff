"""The OpenAPI document: valid, complete, and true."""

import asyncio

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from docferry_cloud.gateway.app import application
from docferry_cloud.gateway.openapi import document
from docferry_cloud.gateway.routes import MIRROR
from docferry_cloud.gateway.schemas import comments
from docferry_cloud.settings import CloudSettings


@pytest.fixture(scope="module")
def described():
    return document()


def test_it_is_a_valid_openapi_3_1_document(described) -> None:
    OpenAPIV31SpecValidator(described).validate()


def test_every_route_is_described_and_nothing_else(described, http_routes) -> None:
    told = {(method.upper(), path) for path, operations in described["paths"].items() for method in operations}
    assert told == http_routes


@pytest.fixture
def http_routes(tmp_path):
    guard = application(None, CloudSettings(tmp_path), asyncio.Event(), None)
    # The console's pages are for people.
    calls = [route for route in guard._inner.routes if not route.path.startswith("/console")]
    return {(method, route.path) for route in calls for method in route.methods if route.include_in_schema}


def test_every_message_and_field_carries_the_contracts_own_words(described) -> None:
    for name, schema in described["components"]["schemas"].items():
        if name in {"Error", "Document_JSON"}:
            continue
        assert schema["description"], name
        for field, inner in schema.get("properties", {}).items():
            assert inner.get("description"), (name, field)
    for route in MIRROR:
        assert (
            described["paths"][route.path][route.method.lower()]["description"]
            == comments()[route.descriptor.full_name]
        )


async def test_it_is_served_to_everyone(tmp_path) -> None:
    app = application(None, CloudSettings(tmp_path), asyncio.Event(), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        assert (await client.get("/openapi.json")).json() == document()
