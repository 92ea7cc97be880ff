"""Built models: made from the pinned originals on another machine, brought here as a folder with a manifest.

    <bundle>/manifest.json            names, hashes, what each was made from, with which tools
    <bundle>/<model>.onnx             the models

Installed, the files stand in `<cache>/built/<first 12 digits of the sha256>/` and the manifest in
`<cache>/built/manifest.json`. The manifest is put there last and by a rename, so a reader sees the old bundle or
the new one, complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ModelError
from docferry.model_store.store import ModelStore, storage_errors

MANIFEST = "manifest.json"
_FORMAT = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[a-z0-9][a-z0-9.-]*\.onnx")


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """One built model.

    Attributes:
        name: The model it stands in for.
        file: Its file's name in the bundle.
        sha256: Of the file.
        size: Of the file, in bytes.
        source: The sha256 of the original it was made from.
    """

    name: str
    file: str
    sha256: str
    size: int
    source: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle's manifest says.

    Attributes:
        models: The models by name.
        seed: What the calibration lines were drawn with.
        tools: Versions of all that had a say in the bytes; with the same ones and the seed, the same bytes come out.
    """

    models: Mapping[str, BuiltModel]
    seed: int
    tools: Mapping[str, str]


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a bundle, and not one of wheels."""
    return (folder / MANIFEST).is_file()


def describe(name: str, file: Path, source: str) -> BuiltModel:
    """The manifest's entry for a file that has just been built from the original with the hash `source`."""
    return BuiltModel(name, file.name, _digest(file), file.stat().st_size, source)


def write_manifest(folder: Path, bundle: Bundle) -> None:
    """Complete a bundle whose model files are in place."""
    _replace(folder / MANIFEST, _rendered(bundle))


def _rendered(bundle: Bundle) -> bytes:
    tree = {
        "format": _FORMAT,
        "seed": bundle.seed,
        "tools": dict(bundle.tools),
        "models": [
            {"name": m.name, "file": m.file, "sha256": m.sha256, "size": m.size, "source": m.source}
            for m in bundle.models.values()
        ],
    }
    return (json.dumps(tree, indent=2) + "\n").encode()


def read_manifest(folder: Path) -> Bundle:
    """What a bundle says it holds; nothing is hashed.

    Raises:
        ModelError: There is no manifest, or one that is not understood.
    """
    file = folder / MANIFEST
    try:
        return _parsed(json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{file} cannot be read as a bundle of built models: {error}",
            remedy="build it again: docferry models build DIR",
        ) from error


def verify_bundle(folder: Path, store: ModelStore) -> Bundle:
    """Hash every file of a bundle.

    Raises:
        ModelError: A file is missing or not the one of the manifest, or was made from another original than the
            pinned one.
    """
    bundle = read_manifest(folder)
    for model in bundle.models.values():
        _require(folder / model.file, model)
        if model.source != store.sha256(model.name):
            raise ModelError(
                f"{model.file} was built from another {model.name} than this version of docferry uses",
                remedy="build the bundle again with this version: docferry models build DIR",
                model=model.name,
            )
    return bundle


def install_bundle(folder: Path, store: ModelStore) -> Bundle:
    """Copy a bundle into the cache; from then on its models are used in place of the originals.

    What is there already and right is left alone.

    Raises:
        ModelError: The bundle is not in order; see `verify_bundle`. Nothing of it is used.
        StorageFull: The disk is full.
        ConfigurationError: The cache folder cannot be written.
    """
    bundle = verify_bundle(folder, store)
    with storage_errors(store.root):
        for model in bundle.models.values():
            target = _place(store, model)
            if target.is_file() and _digest(target) == model.sha256:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(folder / model.file, target)
            # The source is another's folder and may have changed since it was hashed.
            _require(target, model)
        if not is_bundle(_folder(store)) or (_folder(store) / MANIFEST).read_bytes() != _rendered(bundle):
            write_manifest(_folder(store), bundle)
    return bundle


def installed(store: ModelStore) -> dict[str, Path]:
    """Built models that can stand in for their originals, by name; empty without a bundle.

    Those made from an original that is no longer pinned are left out: an upgrade then reads with the originals until
    a new bundle comes.

    Raises:
        ModelError: The bundle in the cache is damaged. Files are checked by size only, as their hashes were when
            they came.
    """
    if not is_bundle(_folder(store)):
        return {}
    fitting = [
        model
        for model in read_manifest(_folder(store)).models.values()
        if model.name in store.manifest.models and store.sha256(model.name) == model.source
    ]
    for model in fitting:
        path = _place(store, model)
        if not path.is_file() or path.stat().st_size != model.size:
            raise _damaged(path, model)
    return {model.name: _place(store, model) for model in fitting}


def verify_installed(store: ModelStore) -> Bundle | None:
    """Hash the built models of this machine; None when there are none.

    Raises:
        ModelError: One is missing or damaged.
    """
    if not is_bundle(_folder(store)):
        return None
    bundle = read_manifest(_folder(store))
    for model in bundle.models.values():
        _require(_place(store, model), model)
    return bundle


def _parsed(tree: Mapping[str, Any]) -> Bundle:
    if tree["format"] != _FORMAT:
        raise ValueError(f"its format is {tree['format']!r}, not {_FORMAT}")
    models = [_model(entry) for entry in tree["models"]]
    return Bundle({model.name: model for model in models}, int(tree["seed"]), dict(tree["tools"]))


def _model(entry: Mapping[str, Any]) -> BuiltModel:
    model = BuiltModel(**entry)
    # Names become paths, so nothing that could climb out of the folder may pass.
    for value, pattern in ((model.file, _FILE), (model.sha256, _SHA256), (model.source, _SHA256)):
        if not pattern.fullmatch(value):
            raise ValueError(f"{value!r} is not what the manifest may hold")
    return model


def _folder(store: ModelStore) -> Path:
    return store.root / "built"


def _place(store: ModelStore, model: BuiltModel) -> Path:
    return _folder(store) / model.sha256[:12] / model.file


def _require(file: Path, model: BuiltModel) -> None:
    if not file.is_file() or _digest(file) != model.sha256:
        raise _damaged(file, model)


def _damaged(file: Path, model: BuiltModel) -> ModelError:
    return ModelError(
        f"{file} is not the built {model.name} that its manifest names",
        remedy="bring the bundle again: docferry models pull --from BUNDLE",
        model=model.name,
    )


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _copy(source: Path, target: Path) -> None:
    growing = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with source.open("rb") as given, growing.open("wb") as file:
            shutil.copyfileobj(given, file)
            file.flush()
            os.fsync(file.fileno())
        growing.replace(target)
    finally:
        growing.unlink(missing_ok=True)


def _replace(target: Path, data: bytes) -> None:
    growing = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with growing.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        growing.replace(target)
    finally:
        growing.unlink(missing_ok=True)
