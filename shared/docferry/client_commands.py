"""The client's commands: submit, watch, get."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from docferry import console, report
from docferry.client import Client, finished
from docferry.errors import ConfigurationError, DocferryError
from docferry.fields.schema import in_shape
from docferry.schema_filling import as_rows, load_schema
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2, event_pb2

_EFFORTS = {
    "fast": envelope_pb2.EFFORT_FAST,
    "deep": envelope_pb2.EFFORT_DEEP,
    "auto": envelope_pb2.EFFORT_AUTO,
}
_FORMATS = {
    "md": analysis_service_pb2.ExportRequest.FORMAT_MARKDOWN,
    "json": analysis_service_pb2.ExportRequest.FORMAT_JSON,
    "csv": analysis_service_pb2.ExportRequest.FORMAT_CSV,
    "xlsx": analysis_service_pb2.ExportRequest.FORMAT_XLSX,
    "html": analysis_service_pb2.ExportRequest.FORMAT_HTML,
    "pdf": analysis_service_pb2.ExportRequest.FORMAT_PDF,
    "content-list": analysis_service_pb2.ExportRequest.FORMAT_CONTENT_LIST,
    "hocr": analysis_service_pb2.ExportRequest.FORMAT_HOCR,
    "alto": analysis_service_pb2.ExportRequest.FORMAT_ALTO,
}
_PACKERS = "docferry.packers"

To = Annotated[str, typer.Option("--to", help="The service, HOST:PORT.")]
Token = Annotated[str, typer.Option("--token", envvar="DOCFERRY_TOKEN", help="Bearer token.")]
Ca = Annotated[Path | None, typer.Option("--ca", help="PEM file of the CA of the service's certificate.")]
Schema = Annotated[
    Path | None,
    typer.Option("--schema", help="JSON Schema or list of questions: `fields` come back in its shape. Waits."),
]
Json = Annotated[bool, typer.Option("--json", help="JSON Lines, one object a document.")]


def submit(
    files: Annotated[list[Path], typer.Argument(help="Pictures of documents.")],
    to: To = "127.0.0.1:50051",
    edge: Annotated[bool, typer.Option("--edge", help="Read here first and send only what is needed.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the finished analysis.")] = False,
    within: Annotated[float, typer.Option("--within", help="Seconds to wait for one document.")] = 300.0,
    effort: Annotated[str, typer.Option("--effort", help="fast, deep or auto.")] = "auto",
    ask: Annotated[
        list[str] | None, typer.Option("--ask", help="A question about each document; may be repeated. Waits.")
    ] = None,
    schema: Schema = None,
    token: Token = "",
    ca: Ca = None,
    json: Json = False,
) -> None:
    """Submit files to a service. Without --edge they go up as they are."""
    if effort not in _EFFORTS:
        raise ConfigurationError(f"--effort {effort!r} is unknown", remedy="fast, deep or auto")
    wanted = load_schema(schema) if schema else None
    packer = _packer() if edge else None

    async def run() -> bool:
        good = True
        async with Client.connect(to, token=token, ca=ca) as client:
            with console.progress() as bar:
                task = bar.add_task("submitting", total=len(files))
                for file in files:
                    seconds = within if wait or ask or wanted is not None else 0.0
                    tree = await _submit_one(client, file, packer, _EFFORTS[effort], seconds, ask or ())
                    tree = await _with_schema(client, tree, wanted, json)
                    _show(tree, json)
                    good = good and tree["status"] not in {"failed", "cancelled"}
                    bar.advance(task)
        return good

    if not asyncio.run(run()):
        raise typer.Exit(1)


def watch(
    to: To = "127.0.0.1:50051",
    since: Annotated[str, typer.Option("--since", help="Resume token; without one from the oldest event.")] = "",
    live: Annotated[bool, typer.Option("--live", help="Leave out what happened before now.")] = False,
    progress: Annotated[bool, typer.Option("--progress", help="Also how many pages have been read.")] = False,
    count: Annotated[int, typer.Option("--count", help="Stop after this many events; 0 means never.")] = 0,
    token: Token = "",
    ca: Ca = None,
    json: Json = False,
) -> None:
    """Print events as they happen, in order; a broken link is taken up again where it stopped."""

    async def run() -> None:
        seen = 0
        async with Client.connect(to, token=token, ca=ca) as client:
            async for event in client.watch(since, live_only=live, progress=progress):
                _show_event(event, json)
                seen += 1
                if seen == count:
                    return

    asyncio.run(run())


def get(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An analysis id or a document id.")],
    schema: Schema = None,
    to: To = "127.0.0.1:50051",
    token: Token = "",
    ca: Ca = None,
    json: Json = False,
) -> None:
    """Print one analysis."""
    wanted = load_schema(schema) if schema else None

    async def run() -> dict[str, Any]:
        async with Client.connect(to, token=token, ca=ca) as client:
            tree = report.analysis("", await _found(client, identifier))
            return await _with_schema(client, tree, wanted, json)

    tree = asyncio.run(run())
    _show(tree, json)
    if tree["status"] == "failed":
        raise typer.Exit(1)


def export(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An analysis id or a document id.")],
    kind: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(_FORMATS)}.")] = "md",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; without one, standard output.")
    ] = None,
    version: Annotated[int, typer.Option("--version", help="The version to export; 0 is the newest.")] = 0,
    to: To = "127.0.0.1:50051",
    token: Token = "",
    ca: Ca = None,
) -> None:
    """Write an analysis as a file: Markdown, JSON, tables as CSV or Excel, HTML, a searchable PDF."""
    if kind not in _FORMATS:
        raise ConfigurationError(f"--format {kind!r} is unknown", remedy=f"one of {', '.join(_FORMATS)}")

    async def run() -> bytes:
        async with Client.connect(to, token=token, ca=ca) as client:
            found = await _found(client, identifier)
            data, _ = await client.export(found.analysis_id, _FORMATS[kind], version=version)
            return data

    data = asyncio.run(run())
    if output is None:
        typer.get_binary_stream("stdout").write(data)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{output} cannot be written: {error.strerror}", remedy="name another file") from error


def fill(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An analysis id or a document id.")],
    schema: Annotated[Path, typer.Option("--schema", help="JSON Schema or list of questions, as a JSON file.")],
    version: Annotated[int, typer.Option("--version", help="The version to fill it from; 0 is the newest.")] = 0,
    to: To = "127.0.0.1:50051",
    token: Token = "",
    ca: Ca = None,
    json: Json = False,
) -> None:
    """Fill a schema of your own from a document: each field with its confidence and evidence, or not found."""
    wanted = load_schema(schema)

    async def run() -> dict[str, Any]:
        async with Client.connect(to, token=token, ca=ca) as client:
            found = await _found(client, identifier)
            filled = await client.fill(found.analysis_id, wanted, version=version)
            tree = {"file": found.file_name, "status": "done", "analysis_id": found.analysis_id}
            if not json:
                return tree | {"fields": as_rows(filled)}
            values = {path: leaf["value"] for path, leaf in filled.items()}
            return tree | {"values": in_shape(wanted, values), "fields": in_shape(wanted, filled)}

    _show(asyncio.run(run()), json)


async def _found(client: Client, identifier: str) -> analysis_pb2.Analysis:
    """An analysis by its own id or its document's."""
    try:
        return await client.get(identifier)
    except DocferryError as error:
        if error.code != "NOT_FOUND":
            raise
    return await client.get(document_id=identifier)


async def _submit_one(
    client: Client,
    file: Path,
    packer: Any,
    effort: envelope_pb2.Effort.ValueType,
    within: float,
    questions: Sequence[str] = (),
) -> dict[str, Any]:
    began = time.perf_counter()
    timings: dict[str, float] = {}
    try:
        if packer is None:
            analysis = await client.submit_file(file, effort=effort)
        else:
            packed = await asyncio.to_thread(packer, file, effort)
            timings |= packed.timings
            analysis = await client.submit(packed.request)
            parts = {part.part_id: part.data for part in packed.parts}
            for want in analysis.wants:
                await client.supply(analysis.analysis_id, want.part_id, parts[want.part_id], offset=want.received)
        timings["ack"] = (time.perf_counter() - began) * 1000
        if within:
            analysis = await client.wait(analysis.analysis_id, within=within)
            timings["event"] = (time.perf_counter() - began) * 1000
        elif not finished(analysis.state):
            analysis = await client.get(analysis.analysis_id)
        if analysis.state == analysis_pb2.Analysis.STATE_SUCCEEDED and analysis.versions:
            answers = [await client.ask(analysis.analysis_id, question) for question in questions]
            analysis.versions[-1].interpretation.answers.extend(answers)
    except DocferryError as error:
        return report.failure(str(file), error)
    return report.analysis(str(file), analysis, timings=timings)


async def _with_schema(client: Client, tree: dict[str, Any], schema: Any, json: bool) -> dict[str, Any]:
    """The document's object with `fields` in the shape of the user's schema; as it is while it is not done."""
    if schema is None or tree["status"] != "done":
        return tree
    try:
        filled = await client.fill(tree["analysis_id"], schema)
    except DocferryError as error:
        return report.failure(tree["file"], error)
    return tree | {"fields": in_shape(schema, filled) if json else as_rows(filled)}


def _packer() -> Any:
    """The edge's own way to pack a file, found by its entry point: this package knows no edge."""
    for entry in metadata.entry_points(group=_PACKERS):
        return entry.load()()
    raise ConfigurationError("--edge needs the edge agent", remedy="pip install 'docferry[edge]'")


def _show(tree: dict[str, Any], json: bool) -> None:
    if json:
        console.print_json(tree)
    else:
        console.print_document(tree)


def _show_event(event: event_pb2.Event, json: bool) -> None:
    known = event_pb2.Event.Type.values()
    # A newer service may tell of something that this release has no name for.
    name = event_pb2.Event.Type.Name(event.type) if event.type in known else str(event.type)
    kind = name.removeprefix("TYPE_").lower()
    state = analysis_pb2.Analysis.State.Name(event.state).removeprefix("STATE_").lower()
    time_text = event.create_time.ToJsonString()
    pages = {}
    if event.HasField("progress"):
        pages = {"pages_done": event.progress.pages_done, "pages": event.progress.pages}
    if json:
        console.print_json(
            {
                "event_id": event.event_id,
                "sequence": event.sequence,
                "resume_token": event.resume_token,
                "type": kind,
                "time": time_text,
                "analysis_id": event.analysis_id,
                "document_id": event.document_id,
                "state": state,
                "version": event.version,
                **pages,
            }
        )
    else:
        read = "  {pages_done} of {pages} pages".format(**pages) if pages else ""
        typer.echo(f"{time_text}  {kind:<14} {event.analysis_id}  {state}  version {event.version}{read}")
