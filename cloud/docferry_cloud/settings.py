"""The table of the service's settings, and the checked values the program works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docferry.channel import is_loopback
from docferry.errors import ConfigurationError
from docferry.settings import Setting
from docferry_cloud import settings_rows as rows
from docferry_cloud.settings_rows import AppriseAddress, Token, Webhook
from docferry_cloud.vlm.settings import SETTINGS as VLM_SETTINGS
from docferry_cloud.vlm.settings import VlmSettings, vlm_settings

LOCAL_TENANT = "local"
"""Tenant and device of every caller while no tokens are configured."""

SETTINGS: tuple[Setting, ...] = (
    Setting("listen.host", "127.0.0.1", "Address to bind; one that others reach needs keys or tokens, and TLS"),
    Setting("listen.port", 50051, "Port to bind; 0 takes a free one", minimum=0, maximum=65535),
    Setting("listen.behind_proxy", False, "A proxy in front speaks TLS: gRPC may bind a public address without it"),
    Setting("listen.reflection", False, "Answer gRPC reflection, for tools such as grpcurl"),
    Setting("listen.max_calls", 1024, "Calls at once, watchers included", minimum=8, maximum=65536),
    Setting("http.host", "127.0.0.1", "Address to bind for HTTP; the rules of listen.host hold"),
    Setting(
        "http.port",
        -1,
        "Port for HTTP (REST, events, result pages); 0 takes a free one, -1 serves none",
        minimum=-1,
        maximum=65535,
    ),
    Setting("http.behind_proxy", False, "A proxy in front speaks TLS: HTTP may bind a public address without it"),
    Setting(
        "http.max_body_mb", 32, "Largest body of a request; larger files go up piece by piece", minimum=1, maximum=96
    ),
    Setting("http.origins", [], "Web origins whose pages may call, e.g. `https://app.example.com`; empty for none"),
    Setting("tls.certificate", "", "PEM file with the server's certificate chain; empty serves without TLS"),
    Setting("tls.key", "", "PEM file with the certificate's private key"),
    Setting("data.directory", "~/.local/share/docferry/cloud", "Folder of the databases; created if missing"),
    Setting(
        "data.database",
        "",
        "`postgresql://USER:PASSWORD@HOST:5432/NAME`, shared by several processes and machines; empty is SQLite there",
    ),
    Setting(
        "data.blobs",
        "",
        "Where supplied files and pictures go: `s3://BUCKET/FOLDER`, `gs://...`, `az://...`; empty is a folder there",
    ),
    Setting("data.blobs_endpoint", "", "URL of an S3 server other than Amazon's; http:// is taken as it is"),
    Setting("data.retention_days", 30, "Analyses and events are deleted after this", minimum=1, maximum=3650),
    Setting("data.min_free_mb", 256, "Nothing new is taken when less than this is free on the disk", minimum=0),
    Setting(
        "tokens",
        [],
        "Who may call: tables {token_sha256, tenant, device}; the hash in hex. A device hears of its own wants only",
    ),
    Setting("limits.calls_per_minute", 0, "Calls of one key, counted by each front end; 0 sets no limit", minimum=0),
    Setting("limits.burst", 60, "Calls of one key at once after a rest", minimum=1),
    Setting(
        "limits.tries_per_minute",
        600,
        "Keys, sessions and links from one address that are not valid; those that were go on. 0 sets no limit",
        minimum=0,
    ),
    Setting("limits.watchers", 512, "Watch streams of one tenant at once, at each front end", minimum=1, maximum=65536),
    Setting("limits.documents_per_day", 0, "Documents of one tenant on a day (UTC); 0 sets no limit", minimum=0),
    Setting("limits.mb_per_day", 0, "MB that one tenant hands in on a day (UTC); 0 sets no limit", minimum=0),
    Setting("audit.retention_days", 90, "How long the record of calls is kept", minimum=1, maximum=3650),
    Setting(
        "queue.limit", 1000, "Analyses waiting or running at once; those waiting for parts are counted apart", minimum=1
    ),
    Setting("queue.tenant_limit", 500, "The same for one tenant", minimum=1),
    Setting(
        "engine.workers",
        2,
        "Documents interpreted at once by a process; 0 leaves them to `docferry cloud worker` processes",
        minimum=0,
        maximum=64,
    ),
    Setting("engine.threads", 1, "Threads of one worker's engine session", minimum=1, maximum=64),
    Setting(
        "engine.recycle_hours",
        24,
        "A worker process older than this finishes or gives back what it does and begins anew; 0 never",
        minimum=0,
    ),
    Setting(
        "engine.recycle_mb",
        3072,
        "The same for one that has grown by more than this since its engine was loaded; 0 never",
        minimum=0,
    ),
    Setting("engine.recycle_documents", 0, "The same for one that has read so many documents; 0 never", minimum=0),
    Setting(
        "engine.remember",
        True,
        "Exactly the same content of one tenant is answered from what was read before, and the answer says so",
    ),
    *VLM_SETTINGS,
    Setting(
        "wants.patience_s",
        60,
        "How long an analysis waits for pictures that the engine asks its device for; 0 never asks",
        minimum=0,
        maximum=3600,
    ),
    Setting(
        "wants.request_hours",
        24,
        "How long a device has for a picture that a person asked for",
        minimum=1,
        maximum=720,
    ),
    Setting("tracing.endpoint", "", "OTLP/HTTP collector, e.g. http://127.0.0.1:4318/v1/traces; empty traces nothing"),
    Setting("log.format", "console", "Lines on standard error: console for people, json for machines"),
    Setting("log.level", "info", "The least that is told: debug, info, warning or error"),
    Setting(
        "metrics.port", 0, "Port of this machine for Prometheus, at /metrics; 0 for none", minimum=0, maximum=65535
    ),
    Setting("webhooks.endpoints", [], "Webhooks: tables {url, secret, tenant}; secret as `whsec_...` or `whsk_...`"),
    Setting("webhooks.allow_private", False, "Let webhooks and pushes go to private and loopback addresses"),
    Setting(
        "webhooks.overlap_hours",
        24,
        "How long the old secret of an endpoint whose secret was changed here signs beside the new one",
        minimum=0,
        maximum=168,
    ),
    Setting(
        "apprise",
        [],
        "People told through Apprise (ntfy, Slack, e-mail, ...): tables {url, tenant, language}; the url is secret, "
        "the language `en` (if none is given) or `zh`",
    ),
    Setting("push.public_url", "", "Where people reach the service, `https://HOST`; links to results begin with it"),
    Setting("web_push.contact", "", "`mailto:` or `https:` address for push services; empty: no Web Push"),
    Setting("web_push.vapid_key", "", "PEM file with the P-256 key of Web Push; empty makes one, kept in the database"),
    Setting("web_push.ttl_hours", 72, "How long a push service keeps a message", minimum=1, maximum=672),
)


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """Everything the service is told, checked. Field for field the table `SETTINGS`.

    Attributes:
        directory: Folder of the databases, and of the blobs unless they are elsewhere.
        database: PostgreSQL URL; empty for SQLite in `directory`.
        blobs: URL of an object store; empty for a folder in `directory`.
        certificate, key: PEM files, both or neither.
        min_free_bytes: Below this the disk counts as full.
    """

    directory: Path
    database: str = ""
    blobs: str = ""
    blobs_endpoint: str = ""
    host: str = "127.0.0.1"
    port: int = 50051
    behind_proxy: bool = False
    reflection: bool = False
    max_calls: int = 1024
    http_host: str = "127.0.0.1"
    http_port: int = -1
    http_behind_proxy: bool = False
    http_body_bytes: int = 32 << 20
    http_origins: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    retention_days: int = 30
    min_free_bytes: int = 0
    tokens: tuple[Token, ...] = ()
    calls_per_minute: int = 0
    burst: int = 60
    tries_per_minute: int = 600
    max_watchers: int = 512
    documents_per_day: int = 0
    mb_per_day: int = 0
    audit_days: int = 90
    queue_limit: int = 1000
    tenant_limit: int = 500
    workers: int = 2
    threads: int = 1
    recycle_s: float = 0.0
    recycle_mb: int = 0
    recycle_documents: int = 0
    remember: bool = True
    patience_s: float = 60.0
    request_s: float = 86400.0
    webhooks: tuple[Webhook, ...] = ()
    apprise: tuple[AppriseAddress, ...] = ()
    allow_private: bool = False
    metrics_port: int = 0
    tracing_endpoint: str = ""
    log_format: str = "console"
    log_level: str = "info"
    overlap_s: float = 86400.0
    public_url: str = ""
    push_contact: str = ""
    vapid_key: Path | None = None
    push_ttl_s: int = 259_200
    vlm: VlmSettings = field(default_factory=VlmSettings)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError(
                "tls.certificate and tls.key belong together", remedy="give both or neither", setting="tls.key"
            )
        if self.reflection and not is_loopback(self.host):
            raise ConfigurationError(
                f"listen.reflection answers everyone who reaches {self.host}, without a key",
                remedy="switch it off, or bind a loopback address such as 127.0.0.1",
                setting="listen.reflection",
            )
        faces = (
            ("listen", self.host, self.behind_proxy),
            ("http", self.http_host, self.http_behind_proxy),
        )
        for name, host, behind_proxy in faces:
            if not (is_loopback(host) or self.certificate or behind_proxy):
                raise ConfigurationError(
                    f"{name}.host is {host}, but nothing speaks TLS: keys and documents would cross in the clear",
                    remedy=f"set tls.certificate and tls.key, or {name}.behind_proxy if a proxy in front speaks TLS",
                    setting=f"{name}.host",
                )

    @property
    def public(self) -> bool:
        """Whether others than this machine's own programs can call."""
        http = self.http_port >= 0 and (self.http_behind_proxy or not is_loopback(self.http_host))
        return http or self.behind_proxy or not is_loopback(self.host)


def cloud_settings(values: Mapping[str, Any]) -> CloudSettings:
    """The checked settings from `docferry.settings.load(SETTINGS, ...)`.

    Raises:
        ConfigurationError: A value does not fit the others, or a table in a list is malformed.
    """
    return CloudSettings(
        directory=Path(values["data.directory"]).expanduser(),
        database=values["data.database"],
        blobs=values["data.blobs"],
        blobs_endpoint=values["data.blobs_endpoint"],
        host=values["listen.host"],
        port=values["listen.port"],
        behind_proxy=values["listen.behind_proxy"],
        reflection=values["listen.reflection"],
        max_calls=values["listen.max_calls"],
        http_host=values["http.host"],
        http_port=values["http.port"],
        http_behind_proxy=values["http.behind_proxy"],
        http_body_bytes=values["http.max_body_mb"] << 20,
        http_origins=rows.origins(values["http.origins"]),
        certificate=rows.path(values["tls.certificate"]),
        key=rows.path(values["tls.key"]),
        retention_days=values["data.retention_days"],
        min_free_bytes=values["data.min_free_mb"] << 20,
        tokens=tuple(rows.token(place, table) for place, table in rows.tables("tokens", values["tokens"])),
        calls_per_minute=values["limits.calls_per_minute"],
        burst=values["limits.burst"],
        tries_per_minute=values["limits.tries_per_minute"],
        max_watchers=values["limits.watchers"],
        documents_per_day=values["limits.documents_per_day"],
        mb_per_day=values["limits.mb_per_day"],
        audit_days=values["audit.retention_days"],
        queue_limit=values["queue.limit"],
        tenant_limit=values["queue.tenant_limit"],
        workers=values["engine.workers"],
        threads=values["engine.threads"],
        recycle_s=values["engine.recycle_hours"] * 3600.0,
        recycle_mb=values["engine.recycle_mb"],
        recycle_documents=values["engine.recycle_documents"],
        remember=values["engine.remember"],
        patience_s=values["wants.patience_s"],
        request_s=values["wants.request_hours"] * 3600.0,
        webhooks=tuple(
            rows.webhook(place, table)
            for place, table in rows.tables("webhooks.endpoints", values["webhooks.endpoints"])
        ),
        apprise=tuple(rows.apprise(place, table) for place, table in rows.tables("apprise", values["apprise"])),
        allow_private=values["webhooks.allow_private"],
        metrics_port=values["metrics.port"],
        tracing_endpoint=values["tracing.endpoint"],
        log_format=values["log.format"],
        log_level=values["log.level"],
        overlap_s=values["webhooks.overlap_hours"] * 3600.0,
        public_url=rows.public_url(values["push.public_url"]),
        push_contact=rows.contact(values["web_push.contact"]),
        vapid_key=rows.path(values["web_push.vapid_key"]),
        push_ttl_s=values["web_push.ttl_hours"] * 3600,
        vlm=vlm_settings(values),
    )
