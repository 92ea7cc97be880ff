"""Under heat or want of memory the reader leaves things out in a fixed order, says so, and comes back with room."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Degradation
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry_edge.desk import Job
from docferry_edge.entry import State
from docferry_edge.frugality import Conditions, FrugalSettings, Gauge, Strain, step, strain
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.reader_wire import job_message, job_of
from docferry_edge.sensors import LinuxSensors
from docferry_edge.work import DirectDesk
from tests.edge.test_agent import examiner, put, running, until
from tests.edge.test_reader_process import job, over

NONE, SMALLER, FEWER, STRUCTURE = Degradation
BOUNDS = FrugalSettings()
conditions = st.builds(
    Conditions,
    st.none() | st.floats(-20, 130),
    st.booleans(),
    st.none() | st.floats(0, 8000),
    st.none() | st.floats(0, 1),
)


@pytest.mark.parametrize(
    ("measured", "wanted"),
    [
        (Conditions(), NONE),
        (Conditions(temperature=75.9, available_mb=200, memory_stall=0.09), NONE),
        (Conditions(temperature=76.0), SMALLER),
        (Conditions(temperature=80.0), FEWER),
        (Conditions(temperature=84.0), STRUCTURE),
        (Conditions(temperature=50.0, throttled=True), FEWER),
        (Conditions(available_mb=199.0), SMALLER),
        (Conditions(available_mb=119.0), FEWER),
        (Conditions(available_mb=59.0), STRUCTURE),
        (Conditions(memory_stall=0.1), SMALLER),
        (Conditions(memory_stall=0.5), STRUCTURE),
        (Conditions(temperature=77.0, available_mb=100.0), FEWER),
    ],
)
def test_each_bound_takes_one_step_more(measured: Conditions, wanted: Degradation) -> None:
    assert step(measured, BOUNDS, NONE) == wanted


def test_a_step_is_given_up_only_with_room_to_spare() -> None:
    level, taken = NONE, []
    for celsius in (75, 76, 75, 74, 80, 78, 77.1, 76.9, 73.1, 72.9):
        level = step(Conditions(temperature=celsius), BOUNDS, level)
        taken.append(level)
    assert taken == [NONE, SMALLER, SMALLER, SMALLER, FEWER, FEWER, FEWER, SMALLER, SMALLER, NONE]


@given(conditions, st.sampled_from(Degradation))
def test_a_step_once_taken_for_these_conditions_stays_with_them(measured: Conditions, current: Degradation) -> None:
    taken = step(measured, BOUNDS, current)
    assert step(measured, BOUNDS, taken) == taken
    assert step(measured, BOUNDS, NONE) <= taken <= max(current, step(measured, BOUNDS, NONE))


@given(conditions, st.sampled_from(Degradation))
def test_every_step_in_force_has_one_reason_with_a_code_and_a_cause(measured: Conditions, current: Degradation) -> None:
    found = strain(measured, BOUNDS, current)
    codes = [reason.code for reason in found.reasons]
    assert codes == ([] if found.degradation is NONE else [f"DEGRADED_{found.degradation.name}"])
    assert all(reason.detail.partition(": ")[2] for reason in found.reasons)


def test_the_gauge_remembers_the_step_and_logs_changes_only(caplog: pytest.LogCaptureFixture) -> None:
    measured = [Conditions(temperature=celsius) for celsius in (60, 77, 75, 60, 60)]
    gauge = Gauge(iter(measured).__next__)
    assert [gauge.look().degradation for _ in range(5)] == [NONE, SMALLER, SMALLER, NONE, NONE]
    assert [record.getMessage() for record in caplog.records] == [
        "reading: lines were looked for on fewer pixels: the device has 77 °C",
        "reading: with everything again",
    ]


def test_a_strain_survives_the_way_to_the_readers_process() -> None:
    given_ = strain(Conditions(available_mb=100.0), BOUNDS, NONE)
    task = Job(job().identity, b"x", given_)
    assert job_of(over(job_message(task, hints=True))) == (task, True)


def test_with_fewer_threads_the_reader_is_loaded_anew_and_later_again() -> None:
    loaded: list[int] = []

    def load(threads: int):
        loaded.append(threads)
        return examiner

    desk = DirectDesk(load, Policies(), Pictures(), threads=4)
    desk.ready()
    for level in (NONE, SMALLER, FEWER, STRUCTURE, NONE):
        desk.read(Job(job().identity, b"good", Strain(level, "hot")))
    assert loaded == [4, 2, 4]


async def test_what_was_left_out_stands_among_the_routes_reasons(tmp_path: Path, link) -> None:
    put(tmp_path, "a.jpg", b"good")
    gauge = Gauge(lambda: Conditions(temperature=81.0))
    async with running(tmp_path, link.port, [], gauge=gauge) as outbox:
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
    (body,) = link.cloud.bodies.values()
    reason = analysis_service_pb2.SubmitRequest.FromString(body).envelope.route.reasons[-1]
    assert reason == envelope_pb2.RouteReason(
        code="DEGRADED_FEWER_THREADS", detail="fewer pixels and fewer threads: the device has 81 °C", value=81.0
    )


def board(root: Path, *zones: tuple[str, str], memory: str = "", pressure: str = "") -> Path:
    for number, (kind, temperature) in enumerate(zones):
        zone = root / f"sys/class/thermal/thermal_zone{number}"
        zone.mkdir(parents=True)
        (zone / "type").write_text(f"{kind}\n")
        (zone / "temp").write_text(f"{temperature}\n")
    (root / "proc/pressure").mkdir(parents=True)
    if memory:
        (root / "proc/meminfo").write_text(memory)
    if pressure:
        (root / "proc/pressure/memory").write_text(pressure)
    return root


def firmware(folder: Path, said: str) -> str:
    program = folder / "vcgencmd"
    program.write_text(f"#!/bin/sh\n{said}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_a_board_is_measured_by_its_hottest_processor_zone(tmp_path: Path) -> None:
    root = board(
        tmp_path,
        ("cpu-thermal", "61234"),
        ("soc-thermal", "64500"),
        ("x86_pkg_temp", "97000"),
        ("gpu-thermal", "no data"),
        memory="MemTotal: 949444 kB\nMemAvailable:  102400 kB\n",
        pressure="some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.00 avg60=0 avg300=0 total=1\n",
    )
    assert LinuxSensors(root, firmware(tmp_path, "echo throttled=0x50000"))() == Conditions(64.5, False, 100.0, 0.125)


@pytest.mark.parametrize(("said", "slowed"), [("echo throttled=0x50005", True), ("echo no", False), ("exit 1", False)])
def test_the_firmware_says_whether_it_slows_down_now(tmp_path: Path, said: str, slowed: bool) -> None:
    assert LinuxSensors(board(tmp_path), firmware(tmp_path, said))() == Conditions(None, slowed, None, None)


def test_this_machine_is_measured_or_says_nothing() -> None:
    measured = LinuxSensors()()
    assert measured.available_mb is not None
    assert measured.available_mb > 0
