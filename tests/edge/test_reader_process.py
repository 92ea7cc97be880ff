"""The reader in a process of its own: what hangs, swells or dies costs itself and nothing else."""

import asyncio
import json
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry import samples
from docferry.errors import ModelError, ReaderStopped, Unavailable, UnreadableImage
from docferry.settings import load
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2
from docferry_edge.desk import Answer, Identity, Job, Packed
from docferry_edge.entry import OutboxPart, State
from docferry_edge.reader_process import ReaderLimits, ReaderProcess, resident_mb
from docferry_edge.reader_wire import Message, answer_message, answer_of
from docferry_edge.settings import SETTINGS, edge_settings
from tests.edge.test_agent import put, running, until

CHILD = """
import os, signal, sys, time
sys.path[:0] = {paths!r}
from docferry.errors import ModelError
from docferry_edge.reader_child import serve
from docferry_edge.work import DirectDesk
from docferry_edge.policies import Policies
from docferry_edge.route import Policy
from docferry_edge.pictures import Pictures
from tests.edge.test_agent import examiner

held = []

def examine(frame, **options):
    word = frame.data.split()[0]
    if word == b"hang":
        time.sleep(600)
    if word == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == b"swell":
        held.append(b"x" * (int(frame.data.split()[1]) << 20))
        time.sleep(600)
    if word == b"grow":
        held.append(b"x" * (int(frame.data.split()[1]) << 20))
    if word == b"nonsense":
        os.write(int(sys.argv[-1]), b"\\0\\0\\0\\5hello")
    if word == b"stammer":
        os.write(int(sys.argv[-1]), b"\\0\\0\\0\\5he")
        time.sleep(600)
    return examiner(frame, **options)

def load():
    {load}
    return DirectDesk(lambda _: examine, Policies(Policy(audit_share=0.0)), Pictures())

serve(load, int(sys.argv[-1]))
"""


def program(load: str = "pass") -> tuple[str, ...]:
    return sys.executable, "-c", CHILD.format(paths=sys.path, load=load)


def job(data: bytes = b"good") -> Job:
    return Job(Identity(str(uuid.uuid4()), str(uuid.uuid4()), "a.jpg", len(data), 1.0), data)


@pytest.fixture
def desk():
    desks = []

    def make(load: str = "pass", **limits) -> ReaderProcess:
        desks.append(ReaderProcess(program(load), ReaderLimits(**{"memory_mb": 4000, "recycle_mb": 4000} | limits)))
        return desks[-1]

    yield make
    for made in desks:
        made.close()


def test_a_document_is_read_in_another_process_and_comes_back_packed(desk) -> None:
    here = desk()
    hints: list[dict] = []
    task = job()
    answer = here.read(task, hints.append)
    envelope = analysis_service_pb2.SubmitRequest.FromString(answer.packed.request).envelope
    assert (envelope.document_id, envelope.file_name) == (task.identity.document_id, "a.jpg")
    assert "hello" in analysis_pb2.Interpretation.FromString(answer.edge_answer).markdown
    assert answer.packed.timings == {"hint": 1.0, "read": 2.0}
    first = here.pid
    assert here.read(job()).packed.request
    assert here.pid == first != os.getpid()


def test_a_bad_document_is_told_as_itself_and_the_reader_stays(desk) -> None:
    here = desk()
    with pytest.raises(UnreadableImage, match="damaged") as error:
        here.read(job(b"bad"))
    assert error.value.remedy == "take the picture again"
    first = here.pid
    assert here.read(job()).packed.request
    assert here.pid == first


@pytest.mark.parametrize(
    ("data", "limits", "reason"),
    [
        (b"hang", {"deadline_s": 0.2}, "no sign of life"),
        (b"die", {}, "signal 9"),
        (b"swell 300", {"memory_mb": 250}, "more than 250"),
        (b"bug", {}, "RuntimeError: a fault of ours"),
        (b"nonsense", {}, "speaks nonsense"),
        (b"stammer", {}, "signal 9"),
    ],
)
def test_a_reader_that_hangs_dies_or_swells_is_replaced(
    desk, data: bytes, limits: dict, reason: str, monkeypatch
) -> None:
    monkeypatch.setattr("docferry_edge.reader_process._PIECE", struct.pack("ll", 0, 300_000))
    here = desk(**limits)
    here.ready()
    first = here.pid
    with pytest.raises(ReaderStopped, match=reason):
        here.read(job(data))
    assert not Path(f"/proc/{first}").exists()
    assert here.read(job()).packed.request
    assert here.pid != first


def test_a_reader_that_has_grown_is_exchanged_after_its_answer(desk) -> None:
    here = desk(recycle_mb=250)
    here.ready()
    first = here.pid
    assert here.read(job(b"grow 10")).packed.request
    assert here.pid == first
    assert here.read(job(b"grow 300")).packed.request
    assert here.pid != first
    assert here.exchanged == 1
    here.ready()
    assert resident_mb(here.pid) < 250


def test_a_reader_that_ended_between_two_documents_is_started_again(desk) -> None:
    here = desk()
    here.ready()
    os.kill(here.pid, signal.SIGKILL)
    os.waitid(os.P_PID, here.pid, os.WEXITED | os.WNOWAIT)
    here.ready()
    assert here.read(job()).packed.request


def test_a_reader_that_cannot_load_says_why(desk) -> None:
    with pytest.raises(ModelError, match="gone"):
        desk("raise ModelError('the model is gone', remedy='pull it')").ready()
    with pytest.raises(Unavailable, match="did not start"):
        desk("os._exit(3)").ready()
    with pytest.raises(Unavailable, match="cannot be started"):
        ReaderProcess(("/nowhere/at/all",)).ready()


def test_closing_ends_a_job_in_work_and_condemns_no_document(desk) -> None:
    here = desk()
    here.ready()
    first = here.pid
    threading.Timer(0.1, here.close).start()
    with pytest.raises(Unavailable):
        here.read(job(b"hang"))
    assert not Path(f"/proc/{first}").exists()
    with pytest.raises(Unavailable):
        here.ready()


def test_no_reader_outlives_a_killed_agent() -> None:
    code = (
        "import sys; from docferry_edge.reader_process import ReaderProcess\n"
        "from tests.edge.test_reader_process import job, program\n"
        "desk = ReaderProcess(program()); desk.ready(); print(desk.pid, flush=True); desk.read(job(b'hang'))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdout is not None
        child = int(agent.stdout.readline())
        agent.kill()
    end = time.monotonic() + 20
    while Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split(")")[1][1] != "Z":
        assert time.monotonic() < end, "the reader lives on"
        time.sleep(0.01)


async def test_a_document_that_stops_the_reader_again_and_again_goes_up_as_it_is(tmp_path, link, desk, caplog) -> None:
    caplog.set_level(logging.CRITICAL)
    put(tmp_path, "a.jpg", b"die now")
    put(tmp_path, "b.jpg", b"good")
    async with running(tmp_path, link.port, [], desk=desk()) as outbox:
        await until(lambda: len(outbox.in_state(State.DELIVERED)) == 2)
        attempts = {entry.file_name: entry.read_attempts for entry in outbox.in_state(State.DELIVERED)}
    sent = [analysis_service_pb2.SubmitRequest.FromString(body).envelope for body in link.cloud.bodies.values()]
    stopped = next(envelope for envelope in sent if envelope.file_name == "a.jpg")
    assert stopped.route.decision == envelope_pb2.ROUTE_DECISION_ORIGINAL
    assert stopped.route.reasons[0].code == "READER_STOPPED"
    assert attempts == {"a.jpg": 4, "b.jpg": 1}


async def test_an_agent_that_stops_in_the_middle_stops_at_once_and_counts_no_attempt(tmp_path, link, desk) -> None:
    put(tmp_path, "a.jpg", b"hang")
    here = desk()
    async with running(tmp_path, link.port, [], desk=here) as outbox:
        await until(lambda: [entry.read_attempts for entry in outbox.in_state(State.CAPTURED)] == [1])
        await asyncio.sleep(0.05)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    async with running(tmp_path, link.port, [], desk=desk("time.sleep(600)")) as outbox:
        assert [entry.read_attempts for entry in outbox.in_state(State.CAPTURED)] == [0]


def test_the_real_reader_is_told_the_settings_and_reads_a_sample(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[route]\naudit_share = 1.0\n[read]\nthreads = 1\n")
    settings = edge_settings(load(SETTINGS, file, {}))
    desk = ReaderProcess((sys.executable, "-m", "docferry_edge.reader_child", json.dumps(settings.reading)))
    photo = samples.paths()[3]
    hints: list[dict] = []
    try:
        answer = desk.read(job(photo.read_bytes()), hints.append)
    finally:
        desk.close()
    kinds = [hint["type"] for hint in hints]
    assert kinds[:3] == ["page", "layout", "lines"]
    assert kinds[-1] == "read"
    assert kinds.count("line") > 10
    envelope = analysis_service_pb2.SubmitRequest.FromString(answer.packed.request).envelope
    assert [reason.code for reason in envelope.route.reasons] == ["AUDIT"]


def test_the_agent_itself_loads_no_network_and_no_pixels() -> None:
    code = "import docferry_edge.agent, docferry_edge.settings, docferry_edge.reader_process, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert not {"numpy", "cv2", "onnxruntime", "PIL"} & set(done.stdout.split())


class Memory:
    """A pipe in memory: what was sent, in order."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def send_bytes(self, data: bytes, /) -> None:
        self.pieces.append(data)

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        if not self.pieces:
            raise EOFError
        return self.pieces.pop(0)


def over(message: Message) -> Message:
    """The message as it arrives at the other end."""
    pipe = Memory()
    message.send(pipe)
    return Message.receive(pipe)


pieces = st.binary(max_size=40) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "head", "blobs"]), inner),
).map(lambda tree: json.dumps(tree).encode())


@given(st.lists(pieces, min_size=1, max_size=3))
def test_nonsense_is_no_message(sent: list[bytes]) -> None:
    try:
        message = Message.receive(Memory(*sent))
    except (ValueError, EOFError):
        return
    assert over(message) == message


@given(
    st.binary(),
    st.binary(),
    st.lists(st.tuples(st.text(max_size=5), st.binary())),
    st.dictionaries(st.text(max_size=5), st.floats(0, 1e6)),
)
def test_an_answer_comes_back_as_it_was(request_, edge_answer, parts, timings) -> None:
    answer = Answer(Packed(request_, tuple(OutboxPart(*part) for part in parts), timings), edge_answer)
    assert answer_of(over(answer_message(answer))) == answer
