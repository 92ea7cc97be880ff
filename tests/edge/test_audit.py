"""The audit slice's outcomes come from what the outbox still holds, while the agent goes on."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.v1 import analysis_pb2
from docferry.wire import document_to_proto
from docferry_edge.audit import audit_outcomes, compared
from docferry_edge.commands import edge_app
from docferry_edge.outbox import Outbox


def document(texts: list[str], confidence: float) -> Document:
    lines = tuple(
        Line(f"r1.l{n + 1}", text, ((0.1, y), (0.6, y), (0.6, y + 0.05), (0.1, y + 0.05)), 0.99, confidence)
        for n, (text, y) in enumerate((text, 0.1 + 0.1 * n) for n, text in enumerate(texts))
    )
    return Document((Page(600, 900, (Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=lines),)),))


EDGE = document(["TOTAL 9.00", "CASH 1000", "CHANGE 1.00", "THANK YOU"], 0.9)
CLOUD = document(["TOTAL 9.00", "CASH 10.00", "CHANGE 1.00", "THANK YOU"], 0.99)


def analysis(reason: str, *versions: tuple[str, Document]) -> analysis_pb2.Analysis:
    found = analysis_pb2.Analysis(state=analysis_pb2.Analysis.STATE_SUCCEEDED)
    found.route.reasons.add(code=reason, detail="")
    for number, (engine, one) in enumerate(versions, 1):
        interpretation = analysis_pb2.Interpretation(document=document_to_proto(one))
        found.versions.add(version=number, engine=engine, interpretation=interpretation)
    return found


def settle(outbox: Outbox, name: str, found: analysis_pb2.Analysis) -> None:
    entry = outbox.capture(source=name, file_name=name, data=b"picture", captured_at=0.0)
    assert entry is not None
    outbox.packed(entry.document_id, request=b"x", parts=[], edge_answer=b"y", timings={})
    outbox.settled(entry.document_id, found.SerializeToString(), {})


def test_what_the_cloud_does_not_confirm_counts_as_wrong() -> None:
    outcome = compared(EDGE, CLOUD)
    assert outcome.observed == pytest.approx(0.25)
    assert outcome.predicted == pytest.approx(0.1, abs=1e-6)
    assert outcome.lines == 4


def test_only_audited_documents_with_both_readings_count(folder: Path) -> None:
    outbox = Outbox(folder)
    settle(outbox, "a", analysis("AUDIT", ("edge", EDGE), ("pipeline", CLOUD)))
    settle(outbox, "b", analysis("LINE_RISK", ("edge", EDGE), ("pipeline", CLOUD)))
    settle(outbox, "c", analysis("AUDIT", ("edge", EDGE)))
    settle(outbox, "d", analysis("AUDIT", ("edge", EDGE), ("pipeline", CLOUD), ("person", EDGE)))
    # The agent has the outbox open all the while.
    found = list(audit_outcomes(folder))
    assert [outcome.observed for outcome in found] == pytest.approx([0.25, 0.25])
    outbox.close()


def test_a_folder_without_an_outbox_has_no_outcomes(tmp_path: Path) -> None:
    assert list(audit_outcomes(tmp_path)) == []


@pytest.mark.parametrize(
    ("wrong", "status", "said"), [(0, 0, "the calibration holds"), (3, 1, "refit the calibration")]
)
def test_the_command_says_whether_to_fit_again(folder: Path, wrong: int, status: int, said: str) -> None:
    texts = ["TOTAL 9.00", "CASH 10.00", "CHANGE 1.00", "THANK YOU"]
    seen = document([f"{text}?" if n < wrong else text for n, text in enumerate(texts)], 0.97)
    outbox = Outbox(folder / "state")
    for n in range(30):
        settle(outbox, str(n), analysis("AUDIT", ("edge", document(texts, 0.97)), ("pipeline", seen)))
    config = folder / "edge.toml"
    config.write_text(f'[state]\ndirectory = "{folder / "state"}"\n', encoding="utf-8")
    told = CliRunner().invoke(edge_app, ["drift", "--config", str(config)])
    outbox.close()
    assert told.exit_code == status
    assert said in told.output
    assert "30 audited documents" in told.output
