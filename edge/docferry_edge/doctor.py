"""What is wrong around an agent: folders, models, camera, and the way to the cloud."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from docferry import doctor
from docferry.async_client import AsyncClient
from docferry.doctor import FAILED, OK, WARNING, Finding, Look
from docferry.errors import Forbidden, NotFound, Unauthenticated, Unavailable
from docferry.model_store import ModelStore
from docferry.model_store.bundle import installed, verify_installed
from docferry_edge.read import MODELS
from docferry_edge.route import Mode
from docferry_edge.settings import EdgeSettings


def examine(settings: EdgeSettings, store: ModelStore) -> Iterator[Finding]:
    """Look at everything the agent needs, one finding after the other."""
    looks: tuple[Look, ...] = (
        ("inbox", lambda: doctor.folder("inbox", settings.inbox, 0, "inbox.directory")),
        ("outbox", lambda: doctor.folder("outbox", settings.state, settings.min_free_bytes, "state.min_free_mb")),
        ("models", lambda: _models(store)),
        ("built models", lambda: _built(store)),
        ("OpenCV", doctor.opencv),
        ("camera", lambda: _camera(settings)),
        ("cloud", lambda: asyncio.run(_cloud(settings))),
    )
    return doctor.all_findings(looks)


def _models(store: ModelStore) -> Finding:
    """A built model stands in for its original, which need not be here then."""
    built = installed(store)
    needed = [name for name in MODELS if name not in built]
    if not needed:
        return Finding("models", OK, "the built ones stand in for all")
    return doctor.models(store, needed)


def _built(store: ModelStore) -> Finding:
    bundle = verify_installed(store)
    if bundle is None:
        remedy = "on a development machine: docferry models build DIR; here: docferry models pull --from DIR"
        return Finding("built models", WARNING, "none: the originals run, which read slower", remedy)
    used = installed(store)
    if len(used) < len(bundle.models):
        left = ", ".join(sorted(set(bundle.models) - set(used)))
        remedy = "build the bundle again with this release"
        return Finding("built models", WARNING, f"{left}: made from an original that is no longer used", remedy)
    return Finding("built models", OK, ", ".join(sorted(used)))


def _camera(settings: EdgeSettings) -> Finding:
    camera = settings.camera
    if camera is None:
        return Finding("camera", OK, "none: documents come through the inbox")
    if camera.source == "rpicam":
        if shutil.which("rpicam-still") is None:
            return Finding("camera", FAILED, "rpicam-still is not installed", "apt install rpicam-apps")
        return Finding("camera", OK, "rpicam-still")
    if not Path(camera.source).exists():
        return Finding("camera", FAILED, f"{camera.source} is not there", "plug it in, or set camera.source")
    return Finding("camera", OK, camera.source)


async def _cloud(settings: EdgeSettings) -> Finding:
    """Asks for an analysis that cannot be: an answer that says so came from a service that knows this device."""
    if settings.policies.base.mode is Mode.OFFLINE:
        return Finding("cloud", OK, "not used: route.mode is offline")
    async with AsyncClient.connect(settings.target, token=settings.token, ca=settings.ca) as client:
        try:
            await client.get(str(uuid.uuid4()))
        except NotFound:
            return Finding("cloud", OK, f"{settings.target} answers and takes this device's key")
        except Forbidden as error:
            return Finding("cloud", FAILED, error.reason, "issue a key with: docferry cloud keys create --scope device")
        except Unauthenticated as error:
            return Finding("cloud", FAILED, error.reason, "set cloud.token to a key of this device")
        except Unavailable as error:
            remedy = "documents are read and kept meanwhile; check cloud.target, cloud.ca and the link"
            return Finding("cloud", WARNING, error.reason, remedy)
    return Finding("cloud", WARNING, "something else answers there", "check cloud.target")
