"""One route of one document through the engine: bytes on the wire, CPU seconds, and how good the answer is.

Requests are packed, serialized and taken apart as in service; only the socket is left out. An answer is kept by the
hash of what was sent and the engine's name, so that curves can be drawn again without reading anything again.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.metrics import WordCounts
from benchmarks.routing_data import Case, Score, score
from docferry.channel import MAX_CHUNK_BYTES
from docferry.document import Document, with_fields
from docferry.errors import DocferryError
from docferry.fields import extract_fields
from docferry.route import Plan
from docferry.upload import original_envelope
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry.vision.images import decode, encode_webp
from docferry_cloud.engine import Effort
from docferry_cloud.interpret import interpret
from docferry_cloud.interpreter import page_inputs
from docferry_cloud.pipeline import PipelineEngine
from docferry_edge.assess import Assessment
from docferry_edge.desk import Identity
from docferry_edge.entry import OutboxPart
from docferry_edge.examine import Examined
from docferry_edge.pack import pack, resized
from docferry_edge.pictures import Pictures
from docferry_edge.prepare import Frame

_NOBODY = str(uuid.UUID(int=0))


@dataclass(frozen=True, slots=True)
class Run:
    """What one route of one document cost and gave.

    Attributes:
        bytes: All request messages, serialized.
        structure: Of these, the structure.
        cpu_s: CPU seconds of the engine and what follows it.
    """

    bytes: int
    structure: int
    cpu_s: float
    score: Score


@dataclass(frozen=True, slots=True)
class Bench:
    """An engine and where its answers are kept. `label` tells engine settings apart that share a name."""

    engine: PipelineEngine
    cache: Path
    label: str
    effort: Effort = Effort.AUTO

    def ours(self, case: Case, assessment: Assessment, plan: Plan) -> Run:
        """A plan of ours."""
        identity = Identity(_NOBODY, str(uuid.UUID(int=1)), case.name, len(case.data), 0.0)
        examined = Examined(case.page, assessment, {}, frame=Frame(case.data, case.name))
        packed = pack(identity, examined, plan, Pictures())
        return self._run(case, packed.request, packed.parts)

    def original(self, case: Case) -> Run:
        """The file as it is: cloud only."""
        envelope = original_envelope(
            case.name, case.data, request_id=str(uuid.UUID(int=2)), effort=envelope_pb2.EFFORT_AUTO
        )
        parts = () if envelope.parts[0].data else (OutboxPart("original", case.data),)
        return self._run(case, analysis_service_pb2.SubmitRequest(envelope=envelope).SerializeToString(), parts)

    def naive(self, case: Case, side: int, quality: int) -> Run:
        """The file scaled down and encoded anew, grey, and nothing else."""
        pixels = decode(case.data, name=case.name)
        data = encode_webp(resized(pixels, side / max(pixels.shape[:2])), quality, grey=True)
        envelope = original_envelope(
            "page.webp", data, request_id=str(uuid.UUID(int=3)), effort=envelope_pb2.EFFORT_AUTO
        )
        return self._run(case, analysis_service_pb2.SubmitRequest(envelope=envelope).SerializeToString(), ())

    def _run(self, case: Case, request: bytes, parts: Iterable[OutboxPart]) -> Run:
        announced = tuple(parts)
        digest = hashlib.sha256(f"{self.label}/{case.name}/".encode() + request)
        for part in announced:
            digest.update(part.data)
        file = self.cache / f"run-{digest.hexdigest()[:24]}.json"
        if file.exists():
            tree = json.loads(file.read_text(encoding="utf-8"))
            counts = tree.pop("score")
            return Run(**tree, score=Score(**{**counts, "words": WordCounts(**counts["words"])}))
        run = self._measured(case, request, announced)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(run)), encoding="utf-8")
        return run

    def _measured(self, case: Case, request: bytes, parts: tuple[OutboxPart, ...]) -> Run:
        envelope = analysis_service_pb2.SubmitRequest.FromString(request).envelope
        began = time.process_time()
        try:
            pages = page_inputs(envelope, {part.part_id: part.data for part in parts})
            document = interpret(pages, self.engine, self.effort, lambda: False).document
        except DocferryError:
            # A document the engine refuses is one it reads nothing of; that is what a caller gets.
            document = Document(())
        structure = envelope.structure.ByteSize() if envelope.HasField("structure") else 0
        return Run(
            bytes=len(request) + sum(map(_supplied, parts)),
            structure=structure,
            cpu_s=round(time.process_time() - began, 4),
            score=score(case.truth, document),
        )


def edge_only(case: Case) -> Run:
    """What the edge says by itself."""
    document = with_fields(case.reading.document, extract_fields(case.reading.document))
    return Run(0, 0, 0.0, score(case.truth, document))


def _supplied(part: OutboxPart) -> int:
    """Bytes of the Supply requests that carry a part."""
    digest = hashlib.sha256(part.data).digest()
    return sum(
        analysis_service_pb2.SupplyRequest(
            analysis_id=_NOBODY,
            part_id=part.part_id,
            offset=offset,
            total_size=len(part.data),
            sha256=digest,
            data=part.data[offset : offset + MAX_CHUNK_BYTES],
        ).ByteSize()
        for offset in range(0, len(part.data), MAX_CHUNK_BYTES)
    )
