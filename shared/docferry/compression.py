"""Bytes to a compressed payload and back, within limits that hold before anything is unpacked."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

import zstandard

from docferry.errors import EnvelopeError, EnvelopeTooLarge
from docferry.v1 import envelope_pb2 as pb

DICTIONARIES = (40001,)
"""Ids of the pairs of dictionaries that ship with this release, oldest first; the last one is packed with. Ids below
32768 and from 2^31 on are zstd's own (RFC 8878, section 5)."""

_LEVEL = 19
_MAGIC = zstandard.FRAME_HEADER
_LARGEST_WINDOW = 8 << 20

_Dictionary = zstandard.ZstdCompressionDict | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a payload may unpack to: bytes, and bytes per packed byte (which counts above `free` bytes)."""

    size: int = 4 << 20
    ratio: float = 100.0
    free: int = 64 << 10


def compress(numbers: bytes, texts: bytes, dictionary: int = DICTIONARIES[-1]) -> pb.Payload:
    """The smaller payload of two: compressed with the dictionaries of that id (0 for none), or as it is."""
    frames = [
        # The payload says which dictionary it was, so the frame need not. A compressor is not safe to share.
        zstandard.ZstdCompressor(level=_LEVEL, dict_data=held, write_dict_id=False).compress(data)
        for data, held in zip((numbers, texts), _dictionaries(dictionary), strict=True)
    ]
    packed = [frame.removeprefix(_MAGIC) for frame in frames]
    if sum(map(len, packed)) >= len(numbers) + len(texts):
        sizes = {"decoded_size": len(numbers), "texts_size": len(texts)}
        return pb.Payload(encoding=pb.ENCODING_IDENTITY, data=numbers, texts=texts, **sizes)
    return pb.Payload(encoding=pb.ENCODING_ZSTD_BARE, data=packed[0], texts=packed[1], dictionary_id=dictionary)


def decompress(payload: pb.Payload, limits: Limits | None = None) -> tuple[bytes, bytes]:
    """The decoded numbers and texts of a payload from whoever sent it, together never more than `limits` allow.

    The texts are empty where an older device left them among the numbers.

    Raises:
        EnvelopeTooLarge: The stated or the real size breaks a limit; nothing was unpacked.
        EnvelopeError: Encoding or dictionary unknown, frame damaged, or not the stated size.
    """
    limits = limits or Limits()
    if payload.encoding == pb.ENCODING_ZSTD_BARE:
        payload = _with_magic(payload)
    size, packed = payload.decoded_size + payload.texts_size, len(payload.data) + len(payload.texts)
    if size > limits.size or (size > limits.free and size > limits.ratio * packed):
        raise EnvelopeTooLarge(
            f"the structure would unpack from {packed} to {size} bytes",
            remedy=f"at most {limits.size} bytes and {limits.ratio:g} times the packed size are taken",
            field="structure",
        )
    if payload.dictionary_id and payload.dictionary_id not in DICTIONARIES:
        raise EnvelopeError(
            f"dictionary {payload.dictionary_id} is unknown to this release",
            remedy=f"update the service, or pack with one of {', '.join(map(str, DICTIONARIES))} or with none",
            field="structure.dictionary_id",
            known=",".join(map(str, DICTIONARIES)),
        )
    held = _dictionaries(payload.dictionary_id)
    numbers = _decoded("data", payload.encoding, payload.data, payload.decoded_size, held[0])
    if not payload.texts and not payload.texts_size:
        return numbers, b""
    return numbers, _decoded("texts", payload.encoding, payload.texts, payload.texts_size, held[1])


def _decoded(name: str, encoding: int, data: bytes, size: int, dictionary: _Dictionary) -> bytes:
    if encoding == pb.ENCODING_ZSTD:
        data = _unzstd(name, data, size, dictionary)
    elif encoding != pb.ENCODING_IDENTITY:
        raise EnvelopeError(
            f"the structure's encoding {encoding} is unknown",
            remedy="use ENCODING_ZSTD_BARE, ENCODING_ZSTD or ENCODING_IDENTITY",
            field="structure.encoding",
        )
    if len(data) != size:
        raise EnvelopeError(
            f"the structure's {name} has {len(data)} bytes, not the stated {size}",
            remedy="state its decoded size exactly",
            field=f"structure.{name}",
        )
    return data


def _with_magic(bare: pb.Payload) -> pb.Payload:
    """The same as ENCODING_ZSTD, its sizes taken from the frames."""
    frames = {"data": _MAGIC + bare.data, "texts": _MAGIC + bare.texts}
    sizes = {name: _stated(name, frame) for name, frame in frames.items()}
    return pb.Payload(
        encoding=pb.ENCODING_ZSTD,
        dictionary_id=bare.dictionary_id,
        decoded_size=sizes["data"],
        texts_size=sizes["texts"],
        **frames,
    )


def _stated(name: str, frame: bytes) -> int:
    try:
        size = zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise _no_frame(name, error) from None
    if size < 0:
        raise EnvelopeError(
            f"the structure's {name} is a zstd frame that does not state its content size",
            remedy="write it with its content size",
            field=f"structure.{name}",
        )
    return size


def _unzstd(name: str, data: bytes, size: int, dictionary: _Dictionary) -> bytes:
    try:
        # `decompress` trusts the frame's own content size more than any argument: compare it first.
        stated = zstandard.frame_content_size(data)
        if stated != size:
            raise EnvelopeError(
                f"the structure's {name} is a zstd frame of {stated} bytes, not of the stated {size}",
                remedy="send one frame that states its content size",
                field=f"structure.{name}",
            )
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_LARGEST_WINDOW)
        return decompressor.decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _no_frame(name, error) from None


def _no_frame(name: str, error: zstandard.ZstdError) -> EnvelopeError:
    return EnvelopeError(
        f"the structure's {name} is not a zstd frame: {error}",
        remedy="send one whole frame",
        field=f"structure.{name}",
    )


@functools.cache
def _dictionaries(dictionary: int) -> tuple[_Dictionary, _Dictionary]:
    """For numbers and for texts; none for 0."""
    if not dictionary:
        return None, None
    folder = resources.files("docferry.dictionaries")
    numbers, texts = ((folder / f"{dictionary}.{kind}.zdict").read_bytes() for kind in ("numbers", "texts"))
    return zstandard.ZstdCompressionDict(numbers), zstandard.ZstdCompressionDict(texts)
