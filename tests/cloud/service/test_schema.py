"""A schema of the caller's own, filled by a running service: over gRPC and by the commands."""

import asyncio
import json
import math
import uuid

import grpc
import pytest
import pytest_asyncio
from google.protobuf import struct_pb2
from typer.testing import CliRunner

from docferry.async_client import AsyncClient
from docferry.channel import call_metadata
from docferry.cli import application
from docferry.errors import NotFound
from docferry.schema_filling import tree_of, value_of
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import document_pb2

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def run(*arguments):
    return await asyncio.to_thread(CliRunner().invoke, application(), [str(argument) for argument in arguments])


@pytest_asyncio.fixture(loop_scope="module")
async def analysis_id(caller, make_envelope):
    taken = await caller.submit(make_envelope())
    await caller.finished(taken.analysis_id)
    # The engine of these tests finds no fields: a person enters one.
    field = document_pb2.Field(name="total", value="RM 9.00", normalized="9.00", confidence=1.0)
    request = pb.CorrectRequest(analysis_id=taken.analysis_id, version=2, fields=[field])
    await caller._analysis.Correct(request, metadata=call_metadata(caller.token))
    return taken.analysis_id


async def test_a_schema_is_filled_typed_with_confidence_and_the_version_it_came_from(caller, analysis_id):
    schema = {"properties": {"total": {"type": "number"}, "lease": {"properties": {"signed": {"format": "date"}}}}}
    request = pb.FillRequest(analysis_id=analysis_id, schema=value_of(schema))
    filled = await caller._analysis.Fill(request, metadata=call_metadata(caller.token))
    assert filled.filled == value_of({"total": 9, "lease": {"signed": None}})
    assert filled.version == 3
    signed, total = filled.fields
    assert (list(total.path), total.found, total.answer.confidence) == (["total"], True, 1.0)
    assert (list(signed.path), signed.found, signed.answer.answer) == (["lease", "signed"], False, "")
    assert signed.value.HasField("null_value")
    request.version = 1
    before = await caller._analysis.Fill(request, metadata=call_metadata(caller.token))
    assert before.version == 1
    assert not any(field.found for field in before.fields)


@pytest.mark.parametrize(
    "schema",
    [
        struct_pb2.Value(),
        struct_pb2.Value(number_value=math.nan),
        value_of("total"),
        value_of([]),
        value_of({"properties": {"a": {"anyOf": []}}}),
    ],
)
async def test_what_is_no_schema_is_refused_by_the_field(caller, analysis_id, reason_of, schema):
    request = pb.FillRequest(analysis_id=analysis_id, schema=schema)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller._analysis.Fill(request, metadata=call_metadata(caller.token))
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


@pytest.mark.parametrize("tree", [{"a": 3, "b": [0.5, -2, True]}, [1e300, 0, None], "3"])
async def test_whole_numbers_come_back_as_they_were(tree):
    assert json.dumps(tree_of(value_of(tree)), sort_keys=True) == json.dumps(tree, sort_keys=True)


async def test_the_client_gives_leaves_in_the_schemas_order(service, caller, analysis_id):
    async with AsyncClient.connect(service.address, token=caller.token) as client:
        filled = await client.fill(analysis_id, {"properties": {"z": {}, "total": {"type": "number"}, "a": {}}})
        assert [(path, leaf["value"]) for path, leaf in filled.items()] == [
            (("z",), None),
            (("total",), 9),
            (("a",), None),
        ]
        with pytest.raises(NotFound):
            await client.fill(str(uuid.uuid4()), ["Who?"])


async def test_the_command_prints_values_and_where_they_come_from(service, caller, analysis_id, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"properties": {"bill": {"properties": {"total": {"type": "number"}}}}}')
    options = ("--to", service.address, "--token", caller.token, "--schema", schema)
    told = await run("fill", analysis_id, *options, "--json")
    assert told.exit_code == 0, told.output
    tree = json.loads(told.stdout)
    assert tree["values"] == {"bill": {"total": 9}}
    assert tree["fields"]["bill"]["total"]["confidence"] == 1.0
    assert "bill.total" in (await run("fill", analysis_id, *options)).stdout


async def test_get_gives_fields_in_the_schemas_shape(service, caller, make_envelope, tmp_path):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    await caller.finished(analysis_id)
    schema = tmp_path / "schema.json"
    schema.write_text('{"properties": {"seller": {"properties": {"lease": {"type": "number"}}}}}')
    options = ("--to", service.address, "--token", caller.token, "--schema", schema)
    told = await run("get", analysis_id, *options, "--json")
    assert told.exit_code == 0, told.output
    leaf = json.loads(told.stdout)["fields"]["seller"]["lease"]
    assert (leaf["found"], leaf["value"], leaf["question"]) == (False, None, "seller lease")
    assert "not found" in (await run("get", analysis_id, *options)).stdout


async def test_a_schema_that_cannot_be_filled_is_refused_before_anything_is_sent(tmp_path):
    schema = tmp_path / "schema.json"
    for text, why in (("{", "no JSON"), ('{"properties": {"a": {"$ref": "b"}}}', "cannot be filled")):
        schema.write_text(text)
        told = await run("submit", tmp_path / "a.jpg", "--to", "127.0.0.1:1", "--schema", schema)
        assert told.exit_code != 0
        assert why in str(told.exception)
