"""Settings: defaults, then the file, then the environment; whatever is unknown or out of range is named."""

from pathlib import Path

import pytest

from docferry.errors import ConfigurationError
from docferry.settings import Setting, load, render

TABLE = (
    Setting("listen.port", 50051, "Port", minimum=0, maximum=65535),
    Setting("listen.host", "127.0.0.1", "Address"),
    Setting("route.risk", 0.02, "Risk", minimum=0.0, maximum=1.0),
    Setting("tokens", [], "Tokens"),
    Setting("debug", False, "Debug"),
)


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    return file


def test_without_a_file_the_defaults_hold() -> None:
    assert load(TABLE, None, {}) == {
        "listen.port": 50051,
        "listen.host": "127.0.0.1",
        "route.risk": 0.02,
        "tokens": [],
        "debug": False,
    }


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, '[listen]\nport = 1\nhost = "a"\n[route]\nrisk = 1\n')
    values = load(TABLE, file, {"DOCFERRY_LISTEN_PORT": "2", "DOCFERRY_DEBUG": "true", "OTHER": "x"})
    assert (values["listen.port"], values["listen.host"], values["debug"]) == (2, "a", True)
    assert values["route.risk"] == 1.0


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ("[listen]\nprot = 1", "unknown setting 'listen.prot'", "'listen.port'"),
        ("[listen]\nport = 70000", "70000", "0..65535"),
        ('[listen]\nport = "x"', "'x'", "takes a int"),
        ("debug = 1", "1", "takes a bool"),
        ("[listen\n", "not valid TOML", "line"),
    ],
)
def test_what_is_wrong_is_named_with_the_remedy(tmp_path: Path, text: str, reason: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as error:
        load(TABLE, write(tmp_path, text), {})
    assert remedy in error.value.remedy


def test_a_wrong_value_in_the_environment_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match="DOCFERRY_LISTEN_PORT"):
        load(TABLE, None, {"DOCFERRY_LISTEN_PORT": "many"})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.toml"):
        load(TABLE, tmp_path / "gone.toml", {})


def test_the_rendered_table_holds_every_setting() -> None:
    text = render(TABLE)
    assert all(f"`{setting.name}`" in text for setting in TABLE)
