"""Objects outside the database: a folder, S3 and what else obstore reaches, behind four calls."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import obstore
import obstore.exceptions
from obstore.store import LocalStore, MemoryStore, from_url

from docferry.errors import ConfigurationError, Unavailable

_TIMEOUT = timedelta(seconds=20)


class StoreAway(Unavailable):
    """Our own object store cannot be reached: that says nothing about the document at hand."""


class Blobs(Protocol):
    """Named objects. Every method blocks, and raises `StoreAway` if the store cannot be reached."""

    def put(self, name: str, data: bytes) -> None:
        """Write an object; durable on return."""

    def get(self, name: str) -> bytes | None:
        """An object's bytes; None if there is none of that name."""

    def piece(self, name: str, start: int, length: int) -> bytes | None:
        """`length` bytes of an object from `start` on, which lie within it; None if there is none of that name."""

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is deleted already."""


class ObjectBlobs:
    """Objects in a store of obstore's.

    Args:
        store: A `LocalStore`, `S3Store`, `GCSStore`, `AzureStore` or, for tests, `MemoryStore`.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        try:
            obstore.put(self._store, name, data)
        except obstore.exceptions.BaseError as error:
            raise _away(error) from error

    def get(self, name: str) -> bytes | None:
        """An object's bytes."""
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (FileNotFoundError, obstore.exceptions.NotFoundError):
            return None
        except obstore.exceptions.BaseError as error:
            raise _away(error) from error

    def piece(self, name: str, start: int, length: int) -> bytes | None:
        """A piece of an object."""
        try:
            return bytes(obstore.get_range(self._store, name, start=start, length=length))
        except (FileNotFoundError, obstore.exceptions.NotFoundError):
            return None
        except obstore.exceptions.BaseError as error:
            raise _away(error) from error

    def delete(self, name: str) -> None:
        """Delete an object."""
        try:
            obstore.delete(self._store, name)
        except (FileNotFoundError, obstore.exceptions.NotFoundError):
            return
        except obstore.exceptions.BaseError as error:
            raise _away(error) from error


class FolderBlobs(ObjectBlobs):
    """Objects as files of a folder, readable by this user only.

    Raises:
        ConfigurationError: The folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        try:
            # `mode` is for the last folder only, and the one above holds the databases.
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{folder} cannot be made: {error.strerror}", remedy="set data.directory to a folder you own"
            ) from error
        super().__init__(LocalStore(str(folder)))
        self._folder = folder

    def put(self, name: str, data: bytes) -> None:
        """Write a file, and see that it and its way there survive a power cut: the store renames, but never syncs."""
        super().put(name, data)
        file = self._folder / name
        _sync(file)
        folder = file.parent
        while folder != self._folder.parent:
            _sync(folder)
            folder = folder.parent


def memory_blobs() -> Blobs:
    """The double: objects in memory."""
    return ObjectBlobs(MemoryStore())


def open_blobs(url: str, folder: Path, endpoint: str = "") -> Blobs:
    """The store that the settings name.

    Args:
        url: `s3://BUCKET/FOLDER`, `gs://...`, `az://...`; empty for files in `folder`. Credentials come from where the
            vendor's own tools take them (`AWS_ACCESS_KEY_ID` and so on, or the machine's role).
        endpoint: URL of a server other than the vendor's.

    Raises:
        ConfigurationError: The URL is none that obstore knows, or the folder cannot be made.
    """
    if not url:
        return FolderBlobs(folder)
    options: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    client: Any = {"allow_http": endpoint.startswith("http://"), "timeout": _TIMEOUT, "connect_timeout": _TIMEOUT}
    retry: Any = {"max_retries": 2, "retry_timeout": _TIMEOUT}
    try:
        return ObjectBlobs(from_url(url, client_options=client, retry_config=retry, **options))
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise ConfigurationError(
            f"data.blobs is {url!r}, which cannot be opened: {error}",
            remedy="give s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER, or leave it empty",
            setting="data.blobs",
        ) from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _away(error: Exception) -> StoreAway:
    # The first line says what happened; the rest is the request in full.
    reason = str(error).partition("\n")[0][:200]
    return StoreAway(f"the object store is away: {reason}", remedy="see that data.blobs can be reached")
