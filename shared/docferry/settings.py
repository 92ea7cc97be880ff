"""One table of settings per program: read from TOML, checked, rendered into docs.

A program states its settings as a tuple of `Setting`. `load` reads a TOML file and gives back plain values by
name; an unknown key is an error that names the nearest known one. Only this module reads the environment:
`DOCFERRY_<NAME>` overrides the file (dots in a name become underscores).
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ConfigurationError

Value = bool | int | float | str | list[Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted name, its default (whose type is its type) and one line of help."""

    name: str
    default: Value
    help: str
    minimum: float | None = None
    maximum: float | None = None


def load(table: Sequence[Setting], file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Values by dotted name: defaults, then the file, then the environment.

    Raises:
        ConfigurationError: The file is missing or not TOML, a key is unknown, a value has the wrong type or range.
    """
    known = {setting.name: setting for setting in table}
    values: dict[str, Any] = {setting.name: setting.default for setting in table}
    if file is not None:
        for name, value in _flatten(_read(file), known).items():
            if name not in known:
                raise ConfigurationError(
                    f"{file}: unknown setting {name!r}", remedy=_nearest(name, known), setting=name
                )
            values[name] = _checked(known[name], value, str(file))
    for name, text in _environment(known, os.environ if environment is None else environment).items():
        values[name] = _checked(known[name], _parsed(known[name], text), _variable(name))
    return values


def render(table: Sequence[Setting]) -> str:
    """The table as Markdown, for `docs/settings.md`."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    rows += [f"| `{s.name}` | `{_shown(s.default)}` | {s.help}{_range(s)} |" for s in table]
    return "\n".join(rows) + "\n"


def user_cache() -> Path:
    """Where models are cached: `DOCFERRY_CACHE`, or the platform's cache folder."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("DOCFERRY_CACHE")
    return Path(chosen) if chosen else user_cache_path("docferry", appauthor=False)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{file}: no such file", remedy="give the path of a TOML file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: not valid TOML: {error}", remedy="correct the line it names") from None


def _flatten(tree: Mapping[str, Any], known: Mapping[str, Setting], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in known:
            flat |= _flatten(value, known, f"{name}.")
        else:
            flat[name] = value
    return flat


def _checked(setting: Setting, value: Any, source: str) -> Any:
    wanted: type = type(setting.default)
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise ConfigurationError(
            f"{source}: {setting.name} is {value!r}",
            remedy=f"{setting.name} takes a {wanted.__name__}, e.g. {_shown(setting.default)}",
            setting=setting.name,
        )
    if isinstance(value, (int, float)) and not _within(setting, value):
        raise ConfigurationError(
            f"{source}: {setting.name} is {value!r}",
            remedy=f"allowed:{_range(setting)}",
            setting=setting.name,
        )
    return value


def _parsed(setting: Setting, text: str) -> Any:
    try:
        if isinstance(setting.default, str):
            return text
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _variable(name: str) -> str:
    return "DOCFERRY_" + name.upper().replace(".", "_")


def _environment(known: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[_variable(name)] for name in known if _variable(name) in environment}


def _nearest(name: str, known: Mapping[str, Setting]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else "see docs/settings.md for the list"


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _within(setting: Setting, value: float) -> bool:
    low, high = setting.minimum, setting.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _range(setting: Setting) -> str:
    if setting.minimum is None and setting.maximum is None:
        return ""
    low = "" if setting.minimum is None else f"{setting.minimum:g}"
    high = "" if setting.maximum is None else f"{setting.maximum:g}"
    return f" ({low}..{high})"
