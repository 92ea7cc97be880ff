"""The settings of the full model, and their checked values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ConfigurationError
from docferry.settings import Setting

_FORMATS = ("webp", "jpeg", "png")
_DTYPES = ("auto", "float32", "bfloat16", "float16")
_QUANTIZE = ("none", "int8")
_LAYOUTS = ("doubt", "always")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "vlm.directory", "", "Directory of a MinerU2.5 model to run in this process; needs the extra `vlm`. Empty: none"
    ),
    Setting("vlm.servers", [], "URLs of servers of such a model that speak OpenAI's API (vLLM, llama-server, ...)"),
    Setting("vlm.model", "", "The model's name on the servers; empty asks each for the only one that it lists"),
    Setting("vlm.key", "", "Bearer token for the servers"),
    Setting("vlm.picture_format", "webp", "How crops travel to the servers: webp, jpeg or png"),
    Setting("vlm.concurrency", 8, "Questions to the servers at once, by one process", minimum=1, maximum=256),
    Setting("vlm.silence_s", 300, "A server that says nothing for so long has failed", minimum=1, maximum=3600),
    Setting(
        "vlm.layout", "doubt", "When the model lays whole pages out: doubt (of the layout that is there) or always"
    ),
    Setting("vlm.dtype", "auto", "Weights in this process: auto (as stored), float32, bfloat16 or float16"),
    Setting("vlm.quantize", "none", "int8 holds the weights in this process as 8-bit integers; none leaves them"),
    Setting("vlm.batch", 4, "Questions answered together in this process", minimum=1, maximum=64),
    Setting("vlm.threads", 0, "Threads of a calculation here; 0: torch's own choice", minimum=0, maximum=256),
)


@dataclass(frozen=True, slots=True)
class VlmSettings:
    """Which full model there is; neither a directory nor servers: none."""

    directory: Path | None = None
    servers: tuple[str, ...] = ()
    model: str = ""
    key: str = ""
    picture_format: str = "webp"
    concurrency: int = 8
    silence_s: float = 300.0
    always_layout: bool = False
    dtype: str = "auto"
    quantize: str = "none"
    batch: int = 4
    threads: int = 0

    @property
    def there(self) -> bool:
        """Whether there is a full model at all."""
        return self.directory is not None or bool(self.servers)


def vlm_settings(values: Mapping[str, Any]) -> VlmSettings:
    """The checked settings of the table above.

    Raises:
        ConfigurationError: A value is none of those it may be, or both a directory and servers are given.
    """
    directory, servers = values["vlm.directory"], tuple(values["vlm.servers"])
    if directory and servers:
        raise ConfigurationError(
            "vlm.directory and vlm.servers are both set", remedy="keep one of them", setting="vlm.servers"
        )
    return VlmSettings(
        directory=Path(directory).expanduser() if directory else None,
        servers=tuple(_url(url) for url in servers),
        model=values["vlm.model"],
        key=values["vlm.key"],
        picture_format=_one_of(values, "vlm.picture_format", _FORMATS),
        concurrency=values["vlm.concurrency"],
        silence_s=float(values["vlm.silence_s"]),
        always_layout=_one_of(values, "vlm.layout", _LAYOUTS) == "always",
        dtype=_one_of(values, "vlm.dtype", _DTYPES),
        quantize=_one_of(values, "vlm.quantize", _QUANTIZE),
        batch=values["vlm.batch"],
        threads=values["vlm.threads"],
    )


def _one_of(values: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str:
    value: str = values[name]
    if value not in allowed:
        raise ConfigurationError(f"{name} is {value!r}", remedy=f"one of {', '.join(allowed)}", setting=name)
    return value


def _url(url: Any) -> str:
    from docferry_cloud.vlm.server import base_url

    try:
        return base_url(url)
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"vlm.servers holds {str(url)[:200]!r}", remedy="give http://HOST:PORT", setting="vlm.servers"
        ) from error
