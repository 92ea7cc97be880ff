"""The table of the agent's settings, and the checked values the program works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ConfigurationError
from docferry.settings import Setting
from docferry_edge.frugality import FrugalSettings
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies, policies_of
from docferry_edge.reader_process import ReaderLimits

SETTINGS: tuple[Setting, ...] = (
    Setting("inbox.directory", "~/docferry/inbox", "Watched folder; every picture that appears in it is a document"),
    Setting("inbox.settle_ms", 150, "A file is taken once it has not changed for this long", minimum=0, maximum=60000),
    Setting("inbox.after", "keep", "What happens to a captured file in the inbox: keep or remove"),
    Setting("camera.source", "", "Camera to take pages with: a device such as /dev/video0, or rpicam; empty for none"),
    Setting("camera.width", 3840, "Width of its pictures in pixels; the nearest it knows", minimum=320, maximum=16384),
    Setting("camera.height", 2160, "Height of its pictures in pixels", minimum=240, maximum=16384),
    Setting("camera.shots", 5, "Most shots of one page, of which the best is kept", minimum=1, maximum=30),
    Setting("camera.pause_ms", 150, "Pause between two looks at the table", minimum=0, maximum=10000),
    Setting(
        "kiosk.port", 0, "Port of the kiosk's page on this machine, e.g. 8484; 0 for none", maximum=65535, minimum=0
    ),
    Setting("state.directory", "~/.local/share/docferry/edge", "Folder of the outbox; created if missing"),
    Setting("state.max_mb", 4096, "Ceiling on that folder; at it new files are refused, none dropped", minimum=16),
    Setting("state.min_free_mb", 64, "Nothing new is taken when less than this is free on the disk", minimum=0),
    Setting(
        "state.keep_hours",
        24,
        "How long a settled document's file is kept for those who ask for its page; the first to go at the ceiling",
        minimum=0,
        maximum=8760,
    ),
    Setting("tracing.endpoint", "", "OTLP/HTTP collector, e.g. http://127.0.0.1:4318/v1/traces; empty traces nothing"),
    Setting("log.format", "console", "Lines on standard error: console for people, json for machines"),
    Setting("log.level", "info", "The least that is told: debug, info, warning or error"),
    Setting(
        "metrics.port", 0, "Port of this machine for Prometheus, at /metrics; 0 for none", minimum=0, maximum=65535
    ),
    Setting("cloud.target", "127.0.0.1:50051", "The cloud service, HOST:PORT"),
    Setting("cloud.token", "", "Bearer token of this device; sent only over TLS or to this machine"),
    Setting("cloud.ca", "", "PEM file of the CA that signed the service's certificate; switches TLS on"),
    Setting("read.threads", 2, "Threads each network may use", minimum=1, maximum=64),
    Setting("read.deadline_s", 60.0, "A page that takes longer has hung the reader", minimum=1.0, maximum=3600.0),
    Setting("read.recycle_mb", 450, "A reader holding more is exchanged between two documents", minimum=64),
    Setting("read.memory_mb", 600, "A reader holding more is killed at once: the ceiling on memory", minimum=64),
    Setting("read.spare", True, "Leave things out when the device is hot or short of memory; the reading says so"),
    Setting("read.hot_c", 76.0, "Degrees Celsius of a board's processor that count as hot", minimum=30, maximum=120),
    Setting("read.low_mb", 200, "Available memory below which it counts as short", minimum=0),
    Setting("read.calibration", "", "File of `docferry calibrate`; empty for the calibration that ships"),
    Setting("route.target_risk", 0.02, "At most this share of lines may be wrong unseen", minimum=0.0, maximum=1.0),
    Setting("route.audit_share", 0.01, "Share of documents sent whole to see drift", minimum=0.0, maximum=1.0),
    Setting("route.mode", "normal", "What may leave: normal, metered, no_images or offline (nothing)"),
    Setting("route.always_overview", False, "Send an overview even where the target is met without it"),
    Setting("route.max_bytes", 0, "Most bytes of a document's request; 0 for no limit", minimum=0),
    Setting("route.metered_bytes", 8000, "The same on a metered link", minimum=0),
    Setting("route.deadline_s", 0.0, "Seconds a document may take on the link below; 0 for no limit", minimum=0.0),
    Setting("route.link_kbps", 0.0, "Kilobits a second that the link carries; 0 if unknown", minimum=0.0),
    Setting("route.redact", [], "Masked before anything leaves: card, iban, national_id, email, phone"),
    Setting("route.mb_per_hour", 0, "Most megabytes that leave in an hour; 0 for no limit", minimum=0),
    Setting("route.pages_per_hour", 0, "Most whole pages that leave in an hour; 0 for no limit", minimum=0),
    Setting("route.tenant", "default", "Whose documents this device captures"),
    Setting("route.policies", [], "What differs by tenant or document type: tables with tenant, document, route keys"),
    Setting("send.overview_side", 768, "Long side of the overview in pixels", minimum=64, maximum=4096),
    Setting("send.overview_quality", 40, "WebP quality of the overview", minimum=1, maximum=100),
    Setting("send.crop_quality", 80, "WebP quality of crops that the plan leaves open", minimum=1, maximum=100),
    Setting("send.page_quality", 60, "WebP quality of a whole page that the plan leaves open", minimum=1, maximum=100),
)

AGENT_MB = 200
"""What the agent itself may take besides its reader: 45 MB at rest, 75 with a camera, and the file it handles."""

_FOR_THE_READER = ("read.", "route.", "send.", "log.")


@dataclass(frozen=True, slots=True)
class CameraSettings:
    """Which camera, its picture's size in pixels, how many shots a page, and the pause between looks in seconds."""

    source: str
    width: int
    height: int
    shots: int
    pause_s: float


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """Everything the agent is told, checked. The table `SETTINGS` explains each.

    Attributes:
        reading: The values that the reader's process is told, by name; see `docferry_edge.reading_settings`.
    """

    inbox: Path
    settle_s: float
    remove_captured: bool
    camera: CameraSettings | None
    kiosk_port: int
    metrics_port: int
    tracing_endpoint: str
    log_format: str
    log_level: str
    state: Path
    max_bytes: int
    min_free_bytes: int
    keep_s: float
    target: str
    token: str
    ca: Path | None
    limits: ReaderLimits
    frugal: FrugalSettings | None
    policies: Policies
    pictures: Pictures
    reading: dict[str, Any]


def edge_settings(values: Mapping[str, Any]) -> EdgeSettings:
    """The checked settings from `docferry.settings.load`'s values.

    Raises:
        ConfigurationError: A value is none of those allowed.
    """
    after = values["inbox.after"]
    if after not in {"keep", "remove"}:
        raise ConfigurationError(f"inbox.after is {after!r}", remedy='"keep" or "remove"', setting="inbox.after")
    return EdgeSettings(
        inbox=Path(values["inbox.directory"]).expanduser(),
        settle_s=values["inbox.settle_ms"] / 1000,
        remove_captured=after == "remove",
        camera=_camera(values),
        kiosk_port=values["kiosk.port"],
        metrics_port=values["metrics.port"],
        tracing_endpoint=values["tracing.endpoint"],
        log_format=values["log.format"],
        log_level=values["log.level"],
        state=Path(values["state.directory"]).expanduser(),
        max_bytes=values["state.max_mb"] << 20,
        min_free_bytes=values["state.min_free_mb"] << 20,
        keep_s=values["state.keep_hours"] * 3600.0,
        target=values["cloud.target"],
        token=values["cloud.token"],
        ca=Path(values["cloud.ca"]).expanduser() if values["cloud.ca"] else None,
        limits=ReaderLimits(
            deadline_s=values["read.deadline_s"],
            recycle_mb=values["read.recycle_mb"],
            memory_mb=values["read.memory_mb"],
        ),
        frugal=FrugalSettings.of(values["read.hot_c"], values["read.low_mb"]) if values["read.spare"] else None,
        policies=policies_of(values),
        pictures=pictures_of(values),
        reading={name: value for name, value in values.items() if name.startswith(_FOR_THE_READER)},
    )


def pictures_of(values: Mapping[str, Any]) -> Pictures:
    """How pictures leave the device."""
    return Pictures(
        values["send.overview_side"],
        values["send.overview_quality"],
        values["send.crop_quality"],
        values["send.page_quality"],
    )


def _camera(values: Mapping[str, Any]) -> CameraSettings | None:
    if not values["camera.source"]:
        return None
    return CameraSettings(
        values["camera.source"],
        values["camera.width"],
        values["camera.height"],
        values["camera.shots"],
        values["camera.pause_ms"] / 1000,
    )
