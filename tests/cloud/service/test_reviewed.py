"""What people's corrections say of the confidences: labels from two versions, and the curve over them."""

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from docferry.v1 import analysis_pb2
from docferry.v1 import operator_service_pb2 as operator_pb
from docferry_cloud.console.charts import ENOUGH
from docferry_cloud.console.charts import risk_curve as drawn
from docferry_cloud.correct import PERSON
from docferry_cloud.database import Database
from docferry_cloud.reviewed import Label, Reviewed, ReviewedFigures, labels_of, risk_curve

LABELS = st.lists(st.builds(Label, st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]) | st.floats(0, 1), st.booleans()))


def version(*lines):
    """A version of one page, of lines with text, confidence (None: none) and whose they are."""
    made = analysis_pb2.Interpretation()
    region = made.document.pages.add().regions.add()
    for number, (text, confidence, by) in enumerate(lines):
        line = region.lines.add(line_id=f"r1.l{number}", text=text, provenance=by)
        if confidence is not None:
            line.confidence = confidence
    return made.SerializeToString()


def test_corrections_are_found_without_going_through_all_versions(tmp_path):
    database = Database(tmp_path / "store.sqlite")
    database.create()
    asked = []
    with database.read() as connection:
        engine = connection.engine
    sa.event.listen(engine, "before_cursor_execute", lambda _c, _u, *statement: asked.append(statement[:2]))
    assert Reviewed(database).figures("shop", 30) == ReviewedFigures(0, 0, ())
    (query,) = [statement for statement in asked if statement[0].startswith("SELECT")]
    with database.read() as connection:
        plan = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query[0]}", query[1])]
    database.close()
    assert plan[0] == "SEARCH versions USING INDEX versions_by_person (create_time>?)"


def test_labels_are_the_lines_that_a_person_settled_and_that_had_a_confidence():
    before = version(("1.0O", 0.25, "edge"), ("same", 0.5, "edge"), ("left", 0.75, "edge"), ("bare", None, "edge"))
    after = version(("1.00", 1.0, PERSON), ("same", 1.0, PERSON), ("left", 0.75, "edge"), ("bare", 1.0, PERSON))
    assert labels_of(after, before) == [Label(0.25, right=False), Label(0.5, right=True)]
    # Settled once, a line says nothing the second time.
    assert labels_of(after, after) == []


def test_the_surest_lines_come_first_and_those_believed_alike_together():
    labels = [Label(0.5, right=False), Label(1.0, right=True), Label(0.5, right=True), Label(0.75, right=True)]
    points = [(point.coverage, point.risk, point.predicted) for point in risk_curve(labels)]
    assert points == [(0.25, 0.0, 0.0), (0.5, 0.0, 0.125), (1.0, 0.25, 0.3125)]


@given(LABELS)
def test_a_curve_rises_in_coverage_and_ends_with_all(labels):
    points = risk_curve(labels)
    assert [point.coverage for point in points] == sorted({point.coverage for point in points})
    assert len(points) <= 51
    if not labels:
        assert points == []
        return
    last = points[-1]
    assert last.coverage == 1.0
    assert last.risk == pytest.approx(sum(not label.right for label in labels) / len(labels))
    assert last.predicted == pytest.approx(sum(1 - label.confidence for label in labels) / len(labels))


@given(st.lists(st.builds(Label, st.floats(0, 1), st.booleans()), min_size=ENOUGH))
def test_what_is_drawn_lies_on_the_chart(labels):
    figures = operator_pb.GetFiguresResponse(reviewed_lines=len(labels))
    for point in risk_curve(labels):
        figures.risk_curve.add(coverage=point.coverage, risk=point.risk, predicted=point.predicted)
    curve = drawn(figures)
    if curve is None:
        assert len(figures.risk_curve) < 2
        return
    for point in (*curve.found.split(), *curve.expected.split()):
        x, y = map(float, point.split(","))
        assert 0 <= x <= 640
        assert 0 <= y <= 160
    assert curve.rows[-1][0] == 1.0


def test_too_few_lines_draw_nothing():
    figures = operator_pb.GetFiguresResponse(reviewed_lines=ENOUGH - 1)
    for point in risk_curve([Label(0.5, right=True), Label(0.75, right=False)]):
        figures.risk_curve.add(coverage=point.coverage, risk=point.risk, predicted=point.predicted)
    assert drawn(figures) is None
