"""Fuzz what unpacks a stranger's envelope: it must answer every input with a reading or an error of ours, in bounds.

    python -m benchmarks.fuzz_envelope [--seconds 300] [--seed 0] [--json FILE]

Three kinds of inputs, in turn: bytes of good envelopes with flips, cuts and splices (mutational); good messages with
some fields set to hostile numbers and texts, packed and compressed as if they were honest (structure-aware); and good
columns with bytes changed before they are compressed, so that they pass the frame and reach the columns. What is
checked: no other error than DocferryError, with a remedy; at most a second and 64 MiB of Python memory an input.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import tracemalloc
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import zstandard
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from benchmarks.generator.make import draw
from benchmarks.generator.truth import Split
from benchmarks.train_dictionary import MIX, reading_of
from docferry.channel import PROTOCOL_VERSION
from docferry.compression import DICTIONARIES, compress
from docferry.envelope import check_envelope
from docferry.errors import DocferryError
from docferry.packing import pack_reading, packed_reading, unpack_reading
from docferry.v1 import envelope_pb2 as pb

_NUMBERS = (0, 1, 2, 7, 127, 128, 255, 4096, 65_535, 65_536, 2**31 - 1)
_TEXTS = ("", "\n", "\n\n\n", "x", "x" * 5000, "\n" * 500, "é\u0301", "\u2028", "0" * 70)
_LARGEST = 64 << 20
_LONGEST_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="of this process's own time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    seeds = [reading_of(draw(*_kind(n), Split.JUDGE, _language(n)), rng) for n in range(20)]
    columns = [packed_reading(reading) for reading in seeds]
    envelopes = [_envelope(pack_reading(reading, rng.choice((0, *DICTIONARIES)))) for reading in seeds]
    makers: dict[str, Callable[[], bytes]] = {
        "mutational": lambda: damaged(rng.choice(envelopes), rng),
        "structure-aware": lambda: hostile(columns, rng),
        "columns": lambda: spoilt(columns, rng),
    }
    counts: dict[str, Counter[str]] = {name: Counter() for name in makers}
    began = time.process_time()
    while time.process_time() - began < options.seconds:
        for name, make in makers.items():
            counts[name][tried(make())] += 1
    _peak(rng, makers)
    report = {name: {"inputs": count.total(), **count} for name, count in counts.items()}
    for name, count in report.items():
        print(f"{name:<16} {count}")
    line = json.dumps({"fuzz_envelope": report})
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def tried(data: bytes) -> str:
    """What became of an input: `read`, or the code of the error; anything else is raised."""
    began = time.process_time()
    try:
        envelope = pb.Envelope.FromString(data)
    except DecodeError:
        return "no message"
    try:
        check_envelope(envelope)
        unpack_reading(envelope.structure)
        outcome = "read"
    except DocferryError as error:
        outcome = error.code if error.remedy else f"{error.code} without a remedy"
    assert "without" not in outcome, outcome
    took = time.process_time() - began
    assert took < _LONGEST_S, f"{took:.2f} s for {len(data)} bytes: {data[:200]!r}"
    return outcome


def damaged(envelope: pb.Envelope, rng: random.Random) -> bytes:
    """A good envelope with damage: anywhere, or in its compressed frames alone so that the message still parses."""
    if rng.random() < 0.4:
        return mutated(envelope.SerializeToString(), rng)
    copy = pb.Envelope()
    copy.CopyFrom(envelope)
    if rng.random() < 0.5:
        copy.structure.data = mutated(copy.structure.data, rng)
    else:
        copy.structure.texts = mutated(copy.structure.texts, rng)
    return copy.SerializeToString()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a few flips, cuts, repeats and splices."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + rng.randint(1, 64)]
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randint(1, 16))
        else:
            piece = out[at : at + rng.randint(1, 64)]
            out[rng.randrange(len(out) + 1) :][:0] = piece
            out += piece
    return bytes(out)


def hostile(columns: Sequence[tuple[bytes, bytes]], rng: random.Random) -> bytes:
    """A reading whose columns hold numbers and texts that no packer writes, compressed as if it were honest."""
    numbers, letters = rng.choice(columns)
    packed, texts = pb.PackedReading.FromString(numbers), pb.PackedTexts.FromString(letters)
    for _ in range(rng.randint(1, 4)):
        _spoil(rng.choice((packed, packed.pages[0], texts)), rng)
    payload = compress(packed.SerializeToString(), texts.SerializeToString(), rng.choice((0, *DICTIONARIES)))
    if rng.random() < 0.2:
        _spoil(payload, rng)
    return _envelope(payload).SerializeToString()


def spoilt(columns: Sequence[tuple[bytes, bytes]], rng: random.Random) -> bytes:
    """Columns mutated as bytes before they are compressed."""
    numbers, letters = rng.choice(columns)
    if rng.random() < 0.7:
        numbers = mutated(numbers, rng)
    else:
        letters = mutated(letters, rng)
    return _envelope(compress(numbers, letters, rng.choice((0, *DICTIONARIES)))).SerializeToString()


def _spoil(message: Message, rng: random.Random) -> None:
    field: FieldDescriptor = rng.choice(list(message.DESCRIPTOR.fields))  # type: ignore[assignment]
    if field.message_type is not None:
        return
    if field.is_repeated:
        values = getattr(message, field.name)
        if rng.random() < 0.5 and len(values):
            values[rng.randrange(len(values))] = _value(field, rng)
        else:
            values.extend([_value(field, rng)] * rng.choice((1, 3, 200, 5000)))
    else:
        setattr(message, field.name, _value(field, rng))


def _value(field: FieldDescriptor, rng: random.Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.randbytes(rng.choice((0, 1, 7, 100, 5000)))
        return rng.choice(_TEXTS)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}:
        return rng.choice((-1, 1)) * rng.choice(_NUMBERS)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice((0, 1, 2, 99))
    return rng.choice(_NUMBERS)


def _peak(rng: random.Random, makers: dict[str, Callable[[], bytes]]) -> None:
    """Some inputs again, with an eye on memory; watching it slows everything down."""
    for make in makers.values():
        for _ in range(200):
            data = make()
            tracemalloc.start()
            tried_quietly(data)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < _LARGEST, f"{peak} bytes of memory for {len(data)} bytes: {data[:200]!r}"
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20))
    payload = pb.Payload(encoding=pb.ENCODING_ZSTD, data=bomb, decoded_size=rng.choice((1, 4 << 20, 256 << 20)))
    tracemalloc.start()
    tried_quietly(_envelope(payload).SerializeToString())
    assert tracemalloc.get_traced_memory()[1] < _LARGEST
    tracemalloc.stop()


def tried_quietly(data: bytes) -> None:
    """Like `tried`, without a limit on time: memory is being watched."""
    try:
        unpack_reading(pb.Envelope.FromString(data).structure)
    except (DecodeError, DocferryError):
        return


def _envelope(payload: pb.Payload) -> pb.Envelope:
    return pb.Envelope(
        request_id=str(uuid.UUID(int=1)),
        document_id=str(uuid.UUID(int=2)),
        protocol_version=PROTOCOL_VERSION,
        structure=payload,
    )


def _kind(number: int) -> tuple[Any, int]:
    return MIX[number % len(MIX)][0], number


def _language(number: int) -> Any:
    return MIX[number % len(MIX)][1]


if __name__ == "__main__":
    main()
