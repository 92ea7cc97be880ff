"""Built models come as a bundle whose every byte is checked, or not at all."""

import hashlib
import json

import pytest

from docferry import model_commands
from docferry.errors import ModelError
from docferry.model_store.bundle import (
    Bundle,
    describe,
    install_bundle,
    installed,
    read_manifest,
    verify_installed,
    write_manifest,
)


@pytest.fixture
def store(store_of, package):
    return store_of(package)


@pytest.fixture
def bundle(tmp_path, store):
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "small.onnx").write_bytes(b"built from small")
    model = describe("small", folder / "small.onnx", store.sha256("small"))
    write_manifest(folder, Bundle({"small": model}, 1, {"onnx": "1.2.3"}))
    return folder


def changed(folder, **values):
    tree = json.loads((folder / "manifest.json").read_text())
    tree["models"][0] |= values
    (folder / "manifest.json").write_text(json.dumps(tree))


def test_a_manifest_reads_back_as_written(bundle):
    found = read_manifest(bundle)
    assert (found.seed, found.tools) == (1, {"onnx": "1.2.3"})
    assert found.models["small"].sha256 == hashlib.sha256(b"built from small").hexdigest()


def test_an_installed_model_stands_in_for_its_original(bundle, store):
    assert installed(store) == {}
    assert verify_installed(store) is None
    install_bundle(bundle, store)
    assert installed(store)["small"].read_bytes() == b"built from small"
    assert verify_installed(store) == read_manifest(bundle)


def test_installing_twice_changes_nothing(bundle, store, left):
    install_bundle(bundle, store)
    once = left()
    times = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    install_bundle(bundle, store)
    assert left() == once
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == times


def test_a_file_with_another_hash_is_refused_and_nothing_is_used(bundle, store):
    (bundle / "small.onnx").write_bytes(b"built from sma11")
    with pytest.raises(ModelError, match=r"small\.onnx is not the built small"):
        install_bundle(bundle, store)
    assert installed(store) == {}


def test_a_missing_file_is_refused(bundle, store):
    (bundle / "small.onnx").unlink()
    with pytest.raises(ModelError, match="not the built small"):
        install_bundle(bundle, store)


def test_a_bundle_built_from_another_original_is_refused(bundle, store):
    changed(bundle, source="0" * 64)
    with pytest.raises(ModelError, match="built from another small"):
        install_bundle(bundle, store)


def test_after_an_upgrade_that_pins_another_original_the_originals_read(bundle, store, tmp_path):
    install_bundle(bundle, store)
    changed(tmp_path / "cache" / "built", source="0" * 64)
    assert installed(store) == {}


@pytest.mark.parametrize("file", ["../small.onnx", "/etc/passwd", "a/b.onnx", "small.txt"])
def test_a_name_that_leaves_the_bundle_is_refused(bundle, store, file):
    changed(bundle, file=file)
    with pytest.raises(ModelError, match="cannot be read as a bundle"):
        install_bundle(bundle, store)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2, "models": [], "seed": 1, "tools": {}}'])
def test_what_is_no_manifest_is_named(bundle, store, text):
    (bundle / "manifest.json").write_text(text)
    with pytest.raises(ModelError, match=r"manifest\.json"):
        install_bundle(bundle, store)


def test_damage_in_the_cache_is_found(bundle, store):
    install_bundle(bundle, store)
    path = installed(store)["small"]
    path.write_bytes(b"built from sma11")
    with pytest.raises(ModelError, match="docferry models pull --from"):
        verify_installed(store)
    path.write_bytes(b"!")
    with pytest.raises(ModelError, match="docferry models pull --from"):
        installed(store)


def test_pull_takes_a_bundle_and_verify_checks_it(bundle, store, monkeypatch, capsys):
    monkeypatch.setattr(model_commands, "default_store", lambda: store)
    model_commands.pull(source=bundle)
    assert capsys.readouterr().out.split("\t")[:2] == ["small", "built"]
    model_commands.verify()
    assert capsys.readouterr().out.split("\t")[:2] == ["small", "built"]


def test_a_bundle_is_not_pulled_in_part(bundle, store, monkeypatch):
    monkeypatch.setattr(model_commands, "default_store", lambda: store)
    with pytest.raises(ModelError, match="as a whole"):
        model_commands.pull(["small"], source=bundle)
