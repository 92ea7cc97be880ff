"""The edge's commands: read, and the agent. Networks and OpenCV are loaded only once a command runs."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docferry import console, report
from docferry.async_client import AsyncClient
from docferry.errors import ConfigurationError, DocferryError
from docferry.settings import load
from docferry.upload import read_file
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2

if TYPE_CHECKING:
    from docferry.tracing import Tell
    from docferry_edge.agent import Agent
    from docferry_edge.camera import Watch
    from docferry_edge.entry import Entry
    from docferry_edge.kiosk.guest import Guest
    from docferry_edge.kiosk.hub import Hub
    from docferry_edge.outbox import Outbox
    from docferry_edge.reader_process import ReaderProcess
    from docferry_edge.settings import CameraSettings, EdgeSettings
    from docferry_edge.work import Examiner

_log = logging.getLogger(__name__)

edge_app = typer.Typer(help="The edge agent.", no_args_is_help=True)

Config = Annotated[Path | None, typer.Option("--config", help="TOML file; without one the defaults hold.")]
Json = Annotated[bool, typer.Option("--json", help="JSON Lines, one object a document.")]


def read(
    files: Annotated[list[Path], typer.Argument(help="Pictures of documents.")],
    threads: Annotated[int, typer.Option("--threads", min=1, max=64, help="Threads each network may use.")] = 2,
    json: Json = False,
) -> None:
    """Read files here, without any network, and print what the edge knows."""
    from docferry.vision.memory import bound_memory
    from docferry_edge.examine import load_examiner

    bound_memory()
    examine = load_examiner(threads)
    good = True
    with console.progress() as bar:
        task = bar.add_task("reading", total=len(files))
        for file in files:
            try:
                tree = _read_one(file, examine)
            except DocferryError as error:
                tree, good = report.failure(str(file), error), False
            if json:
                console.print_json(tree)
            else:
                console.print_document(tree)
            bar.advance(task)
    if not good:
        raise typer.Exit(1)


@edge_app.command("run")
def run(config: Config = None, json: Json = False) -> None:
    """Run the agent: watch the inbox, read, send, and print every answer."""
    from docferry import logs
    from docferry.malloc import one_arena
    from docferry_edge.settings import SETTINGS, edge_settings

    # The reader runs in a process of its own, which would say too late, and to nobody, what is not installed.
    for module in ("onnxruntime", "uvicorn"):
        if find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    one_arena()
    settings = edge_settings(load(SETTINGS, config))
    logs.configure(settings.log_format, settings.log_level)

    def tell(entry: Entry, outbox: Outbox) -> None:
        tree = entry_tree(entry, outbox)
        if json:
            console.print_json(tree)
        else:
            console.print_document(tree)

    def ready() -> None:
        if json:
            console.print_json({"status": "ready", "inbox": str(settings.inbox)})

    asyncio.run(_run(settings, tell, ready))


@edge_app.command("doctor")
def doctor(config: Config = None, json: Json = False) -> None:
    """Look at what the agent needs, and say what is wrong and what to do; exit status 1 if it would not work."""
    from docferry.doctor import report as say
    from docferry.model_store import default_store
    from docferry_edge.doctor import examine
    from docferry_edge.settings import SETTINGS, edge_settings

    say(examine(edge_settings(load(SETTINGS, config)), default_store()), as_json=json)


@edge_app.command("retry")
def retry(
    document: Annotated[str, typer.Argument(metavar="[ID]", help="A document id; without one, all.")] = "",
    config: Config = None,
) -> None:
    """Let documents that failed or were refused go again. Stop the agent first."""
    from docferry_edge.entry import State
    from docferry_edge.outbox import Outbox
    from docferry_edge.settings import SETTINGS, edge_settings

    settings = edge_settings(load(SETTINGS, config))
    outbox = Outbox(settings.state)
    try:
        entries = [outbox.get(document)] if document else outbox.in_state(State.FAILED, State.QUARANTINED)
        for entry in entries:
            again = outbox.retry(entry.document_id)
            typer.echo(f"{entry.document_id}  {entry.file_name}  {'goes again' if again else 'nothing to go on'}")
    finally:
        outbox.close()


@edge_app.command("drift")
def drift(config: Config = None, json: Json = False) -> None:
    """Say from the audited documents whether the calibration still holds; status 1 if it should be fitted again."""
    from dataclasses import asdict

    from docferry_edge.audit import audit_outcomes
    from docferry_edge.drift import watch_drift
    from docferry_edge.settings import SETTINGS, edge_settings

    found = watch_drift(audit_outcomes(edge_settings(load(SETTINGS, config)).state))
    if json:
        console.print_json({**asdict(found), "advice": found.advice})
    else:
        typer.echo(found.advice)
    if found.alarm_at is not None:
        raise typer.Exit(1)


def packer() -> Callable[[Path, envelope_pb2.Effort.ValueType], Any]:
    """A function that reads a file here and packs what is to be sent; loads the reader once, on the first file."""
    from docferry_edge.desk import Identity
    from docferry_edge.dispatch import dispatch
    from docferry_edge.examine import load_examiner
    from docferry_edge.pictures import Pictures
    from docferry_edge.policies import Policies
    from docferry_edge.prepare import Frame

    examine = load_examiner(2)

    def packed(file: Path, effort: envelope_pb2.Effort.ValueType) -> Any:
        data = read_file(file)
        identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), file.name, len(data), time.time())
        examined = examine(Frame(data, str(file)))
        return dispatch(identity, examined, Policies(), Pictures(), effort=effort).packed

    return packed


def entry_tree(entry: Entry, outbox: Outbox) -> dict[str, Any]:
    """The JSON object of an outbox entry: the cloud's answer once it is there, before that the edge's own."""
    from docferry.wire import document_from_proto, route_from_proto

    if entry.error:
        head = {"file": entry.file_name, "status": "failed", "document_id": entry.document_id}
        return {**head, "quarantined": entry.state.value == "quarantined", "error": entry.error}
    analysis = outbox.analysis(entry.document_id)
    if analysis is not None:
        found = analysis_pb2.Analysis.FromString(analysis)
        return report.analysis(entry.file_name, found, timings=entry.timings)
    answer = analysis_pb2.Interpretation.FromString(outbox.edge_answer(entry.document_id) or b"")
    request = outbox.request(entry.document_id)
    route = None
    if request is not None:
        route = route_from_proto(analysis_service_pb2.SubmitRequest.FromString(request).envelope.route)
    return report.edge_reading(
        entry.file_name,
        entry.document_id,
        document_from_proto(answer.document),
        markdown=answer.markdown,
        original_bytes=entry.original_bytes,
        route=route,
        timings=entry.timings,
    )


def _read_one(file: Path, examine: Examiner) -> dict[str, Any]:
    from docferry.markdown import render
    from docferry_edge.prepare import Frame
    from docferry_edge.route import Policy, plan

    data = read_file(file)
    examined = examine(Frame(data, str(file)))
    document_id = str(uuid.uuid4())
    document = examined.assessment.reading.document
    return report.edge_reading(
        str(file),
        document_id,
        document,
        markdown=render(document),
        original_bytes=len(data),
        route=plan(examined.assessment, Policy(audit_share=0.0), document_id).route,
        timings=examined.timings,
    )


async def _run(settings: EdgeSettings, tell: Callable[[Entry, Outbox], None], ready: Callable[[], None]) -> None:
    from docferry_edge.agent import Agent
    from docferry_edge.capture import Inbox
    from docferry_edge.frugality import Gauge
    from docferry_edge.outbox import Outbox
    from docferry_edge.reader_process import ReaderProcess
    from docferry_edge.sensors import LinuxSensors

    camera = settings.camera
    hub, listener = _kiosk(settings)
    watch = _watch(camera, hub) if camera is not None else None
    program = (sys.executable, "-m", "docferry_edge.reader_child", json.dumps(settings.reading))
    settings.inbox.mkdir(parents=True, exist_ok=True)
    settings.state.mkdir(parents=True, exist_ok=True)
    outbox = Outbox(settings.state, max_bytes=settings.max_bytes, min_free_bytes=settings.min_free_bytes)
    desk = ReaderProcess(program, settings.limits)
    seen = ExitStack()
    try:
        count, spans = _seen(settings, outbox, desk, seen)

        def report_and_count(entry: Entry) -> None:
            tell(entry, outbox)
            count(entry)

        async with AsyncClient.connect(settings.target, token=settings.token, ca=settings.ca) as client:
            guest = _guest(hub, outbox, client)
            agent = Agent(
                outbox=outbox,
                inbox=Inbox(settings.inbox, settings.settle_s),
                desk=desk,
                client=client,
                report=report_and_count,
                ready=ready,
                policies=settings.policies,
                remove_captured=settings.remove_captured,
                tell=guest.tell if guest is not None else None,
                gauge=Gauge(LinuxSensors(), settings.frugal) if settings.frugal is not None else None,
                watch=watch,
                look_pause_s=camera.pause_s if camera is not None else 0.0,
                pictures=settings.pictures,
                keep_s=settings.keep_s,
                spans=spans,
            )
            task = asyncio.ensure_future(_together(agent, hub, guest, listener))
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, task.cancel)
            await task
    except asyncio.CancelledError:
        _log.info("stopped; what is unsent stays in the outbox")
    except BaseExceptionGroup as group:
        # A task group wraps what stopped it; the one cause a user can act on is shown, not the wrapping.
        expected = group.subgroup(DocferryError)
        if expected is None:
            raise
        raise _first(expected) from None
    finally:
        if watch is not None:
            watch.camera.close()
        if listener is not None:
            listener.close()
        seen.close()
        outbox.close()


def _seen(
    settings: EdgeSettings, outbox: Outbox, desk: ReaderProcess, closing: ExitStack
) -> tuple[Callable[[Entry], None], Tell | None]:
    """What counts reported documents and what takes spans, as far as the settings ask for them.

    Raises:
        ConfigurationError: The collector's URL is none.
    """
    from docferry.metrics import serve_metrics
    from docferry.tracing import open_traces
    from docferry_edge.metrics import EdgeMetrics

    traces = open_traces(settings.tracing_endpoint, "docferry-edge")
    if traces is not None:
        closing.callback(traces.close)
    spans = traces.tell if traces is not None else None
    if not settings.metrics_port:
        return lambda _: None, spans
    counted = EdgeMetrics(outbox, lambda: desk.exchanged)
    # Documents matter more than the page about them.
    try:
        closing.callback(serve_metrics(counted.metrics, settings.metrics_port).close)
    except ConfigurationError as error:
        _log.error("no metrics are served: %s", error)
    return counted.told, spans


def _watch(camera: CameraSettings, hub: Hub | None) -> Watch:
    from docferry_edge.camera import Watch, open_camera

    opened = open_camera(camera.source, camera.width, camera.height)
    return Watch(opened, camera.shots, hub.show if hub is not None else None)


def _kiosk(settings: EdgeSettings) -> tuple[Hub, socket.socket] | tuple[None, None]:
    """The kiosk page's hub and socket, if there is to be a page."""
    if not settings.kiosk_port:
        return None, None
    from docferry_edge.kiosk.hub import Hub
    from docferry_edge.kiosk.server import listen

    try:
        listener = listen(settings.kiosk_port)
    except ConfigurationError as error:
        # Documents matter more than the page that shows them.
        _log.error("no kiosk page: %s", error)
        return None, None
    return Hub(asyncio.get_running_loop(), has_camera=settings.camera is not None), listener


def _guest(hub: Hub | None, outbox: Outbox, client: AsyncClient) -> Guest | None:
    """Who stands before the page, if there is one."""
    if hub is None:
        return None
    from docferry_edge.kiosk.guest import Guest

    return Guest(outbox, client, hub.tell)


async def _together(agent: Agent, hub: Hub | None, guest: Guest | None, listener: socket.socket | None) -> None:
    """Run the agent and, if there is one, the page beside it."""
    if hub is None or guest is None or listener is None:
        await agent.run()
        return
    from docferry_edge.kiosk.server import serve

    async with asyncio.TaskGroup() as tasks:
        guest.on_captured(agent.wake)
        tasks.create_task(serve(hub, listener, guest))
        tasks.create_task(guest.run())
        tasks.create_task(agent.run())


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
