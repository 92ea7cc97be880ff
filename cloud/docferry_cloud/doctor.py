"""What is wrong with a service's surroundings, looked at one by one, before or while it runs; nothing is changed."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path

from docferry import doctor
from docferry.doctor import FAILED, OK, WARNING, Finding, Look
from docferry.errors import ConfigurationError
from docferry.model_store import ModelStore
from docferry_cloud import migrate
from docferry_cloud.access.keys import Keys
from docferry_cloud.blobs import open_blobs
from docferry_cloud.database import Database, wall_clock
from docferry_cloud.meaning import embeddings
from docferry_cloud.settings import CloudSettings
from docferry_cloud.sinks.apprise import check_address
from docferry_cloud.vlm import doctor as full_model

_CLOCK_S = 2.0
"""Machines whose clocks differ by more than this show odd times; nothing is lost by it."""
_EXPIRES_DAYS = 14


def examine(settings: CloudSettings, store: ModelStore) -> Iterator[Finding]:
    """Look at everything the service needs, one finding after the other; one that fails keeps none from the others."""
    database = Database(settings.database or settings.directory / "store.sqlite")
    looks: tuple[Look, ...] = (
        (
            "data folder",
            lambda: doctor.folder("data folder", settings.directory, settings.min_free_bytes, "data.min_free_mb"),
        ),
        ("database", lambda: _database(database, settings)),
        ("clock", lambda: _clock(database, settings)),
        ("blobs", lambda: _blobs(settings)),
        ("models", lambda: _models(store, settings)),
        (full_model.NAME, lambda: full_model.look(settings.vlm)),
        (embeddings.NAME, embeddings.look),
        ("OpenCV", doctor.opencv),
        ("TLS", lambda: _tls(settings)),
        ("access", lambda: _access(database, settings)),
        ("Apprise", lambda: _apprise(settings)),
        ("address", lambda: _address("listen", settings.host, settings.port)),
        ("HTTP address", lambda: _address("http", settings.http_host, settings.http_port)),
    )
    try:
        yield from doctor.all_findings(looks)
    finally:
        database.close()


def _database(database: Database, settings: CloudSettings) -> Finding:
    if not settings.database and not (settings.directory / "store.sqlite").exists():
        return Finding("database", WARNING, "it is not there yet", "the first start makes it")
    with database.read() as connection:
        reached, newest = migrate.reached(connection)
    if reached == newest:
        return Finding("database", OK, f"at step {reached}")
    if reached is not None and reached > newest:
        remedy = "run the newer release, or restore a backup"
        return Finding("database", FAILED, f"at step {reached}; this release knows {newest}", remedy)
    return Finding("database", WARNING, f"at step {reached or 0} of {newest}", "the next start brings it up to date")


def _clock(database: Database, settings: CloudSettings) -> Finding:
    if not settings.database:
        return Finding("clock", OK, "one machine, one clock")
    apart = abs(wall_clock() - database.now()) / 1_000_000
    detail = f"{apart:.1f} s from the database's"
    return (
        Finding("clock", OK, detail) if apart <= _CLOCK_S else Finding("clock", WARNING, detail, "run a time service")
    )


def _blobs(settings: CloudSettings) -> Finding:
    folder = settings.directory / "blobs"
    if not settings.blobs and not folder.exists():
        return Finding("blobs", WARNING, f"{folder} is not there yet", "the first start makes it")
    blobs, name = open_blobs(settings.blobs, folder, settings.blobs_endpoint), f"probe/{uuid.uuid4()}"
    blobs.put(name, b"probe")
    back = blobs.get(name)
    blobs.delete(name)
    if back != b"probe" or blobs.get(name) is not None:
        remedy = "give one store to all processes, with consistent reads"
        return Finding("blobs", FAILED, "what was put there does not come back, or does not go", remedy)
    return Finding("blobs", OK, settings.blobs or str(folder))


def _models(store: ModelStore, settings: CloudSettings) -> Finding:
    if not settings.workers:
        return Finding("models", OK, "not needed: engine.workers is 0")
    return doctor.models(store, store.manifest.sets["cloud"])


def _tls(settings: CloudSettings) -> Finding:
    if settings.certificate is None or settings.key is None:
        return Finding("TLS", OK, "none: a proxy's, or this machine's own address")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key)
    except (ssl.SSLError, OSError) as error:
        remedy = "set tls.certificate and tls.key to PEM files that belong together"
        return Finding("TLS", FAILED, f"the files cannot be used: {error}", remedy)
    left = _expiry(settings.certificate) - dt.datetime.now(dt.UTC)
    detail = f"the certificate ends in {left.days} days"
    if left.total_seconds() <= 0:
        return Finding("TLS", FAILED, "the certificate has expired", "renew it and start again")
    return Finding("TLS", OK, detail) if left.days >= _EXPIRES_DAYS else Finding("TLS", WARNING, detail, "renew it")


def _expiry(certificate: Path) -> dt.datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificates(certificate.read_bytes())[0].not_valid_after_utc


def _access(database: Database, settings: CloudSettings) -> Finding:
    there = bool(settings.database) or (settings.directory / "store.sqlite").exists()
    known = bool(settings.tokens) or (there and _keys(database))
    if settings.public and not known:
        remedy = "make one with: docferry cloud keys create"
        return Finding("access", FAILED, "others reach the service, but there are no keys: it will not start", remedy)
    return Finding("access", OK, "keys or tokens are needed" if known else "open to this machine, to nobody else")


def _keys(database: Database) -> bool:
    with database.read() as connection:
        reached, newest = migrate.reached(connection)
    return reached == newest and Keys(database).exist()


def _apprise(settings: CloudSettings) -> Finding:
    for index, address in enumerate(settings.apprise):
        try:
            check_address(f"apprise[{index}]", address.url)
        except ConfigurationError as error:
            return Finding("Apprise", FAILED, error.reason, error.remedy)
    return Finding("Apprise", OK, f"{len(settings.apprise)} addresses" if settings.apprise else "none")


def _address(face: str, host: str, port: int) -> Finding:
    name = "address" if face == "listen" else "HTTP address"
    if port <= 0:
        return Finding(name, OK, "a free one" if port == 0 else "none")
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as error:
            remedy = f"fine if it is this service that runs there; else set {face}.port"
            return Finding(name, WARNING, f"{host}:{port} cannot be bound: {error.strerror}", remedy)
    return Finding(name, OK, f"{host}:{port}")
