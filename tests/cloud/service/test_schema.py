"""The commands' --schema against a running service."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from docferry.cli import application

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def run(*arguments):
    return await asyncio.to_thread(CliRunner().invoke, application(), [str(argument) for argument in arguments])


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
