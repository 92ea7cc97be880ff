"""The body of the second workflow: the full model's version of an analysis that has its fast answer already."""

from __future__ import annotations

import functools
import logging
import threading

from docferry.errors import DocferryError, Unavailable
from docferry.logs import about
from docferry.v1 import analysis_pb2
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import document_from_proto
from docferry_cloud.blobs import StoreAway
from docferry_cloud.deep_notices import cost_of
from docferry_cloud.deepen_list import DeepClaim, DeepenList
from docferry_cloud.deepening import deepen
from docferry_cloud.dialects import DatabaseAway
from docferry_cloud.engine import Deepener, Effort
from docferry_cloud.interpreter import EFFORTS, interpretation_bytes, page_inputs
from docferry_cloud.log_ids import ids_of
from docferry_cloud.rows import NewVersion
from docferry_cloud.schema import WantState
from docferry_cloud.still_ours import no_longer_wanted
from docferry_cloud.store import Store
from docferry_cloud.turns import Turns
from docferry_cloud.wanted import part_of
from docferry_cloud.work import ALONE_PATIENCE_S

log = logging.getLogger(__name__)

_OF_THE_FAST = frozenset({"DEEP_FOLLOWS", "DEEP_UNAVAILABLE", "READ_BEFORE"})


class DeepWork:
    """Deepens analyses with one engine's second step.

    Args:
        stopping: Set when the service shuts down; work then stops and is given back.
        turns: Of all work in this process, fast and deep.
    """

    def __init__(
        self, store: Store, waiting: DeepenList, deep: Deepener, stopping: threading.Event, turns: Turns
    ) -> None:
        self._store = store
        self._waiting = waiting
        self._deep = deep
        self._stopping = stopping
        self._turns = turns

    def run(self, analysis_id: str) -> None:
        """Claim and deepen one analysis; what fails is tried again later.

        It takes its turn among the fast ones, so that one that may kill the process takes no other along.
        """
        if not self._waiting.is_suspect(analysis_id):
            with self._turns.beside():
                self._run(analysis_id, alone=False)
            return
        with self._turns.alone(ALONE_PATIENCE_S) as free:
            if free:
                self._run(analysis_id, alone=True)

    def _run(self, analysis_id: str, *, alone: bool) -> None:
        with self._waiting.claimed(analysis_id, self._deep.name, alone=alone) as claim:
            if claim is None:
                return
            with about(**ids_of(claim.analysis_id, claim.document_id, claim.tenant)):
                try:
                    self._deepen(claim)
                except (DatabaseAway, StoreAway):
                    # If not even this can be stored, `DeepenList.lease` finds it.
                    self._waiting.put_off(claim, failed=False)
                except Unavailable as error:
                    log.warning("the full model is asked again later: %s", error)
                    self._waiting.put_off(claim, failed=False)
                except DocferryError as error:
                    log.warning("the full model failed or was stopped: %s", error)
                    self._waiting.put_off(claim, failed=not self._stopping.is_set())
                # Its libraries raise anything; the fast answer stands.
                except Exception:
                    log.exception("the full model failed")
                    self._waiting.put_off(claim, failed=True)

    def _deepen(self, claim: DeepClaim) -> None:
        stored = self._store.envelope(claim.analysis_id)
        if stored is None:
            return
        body, supplied = stored
        envelope = pb.Envelope.FromString(body)
        asked = self._store.asked(claim.analysis_id)
        envelope.parts.extend(part_of(want) for want in asked if want.state is WantState.SUPPLIED)
        before = analysis_pb2.Interpretation.FromString(claim.interpretation)
        effort = EFFORTS.get(claim.effort, Effort.AUTO)
        pages = page_inputs(envelope, supplied)
        cancelled = no_longer_wanted(self._stopping, functools.partial(self._waiting.is_ours, claim))
        result, cost = deepen(pages, document_from_proto(before.document), self._deep, effort, cancelled)
        notices = [notice for notice in before.notices if notice.code not in _OF_THE_FAST]
        version = NewVersion(self._deep.name, interpretation_bytes(result, [*notices, cost_of(cost)]))
        if self._waiting.finish(claim, version, None):
            log.info("deepened")
