"""Diagrams: who is connected to whom, from drawn pictures with known texts, and through the engine."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.generator.diagrams import draw_diagram
from benchmarks.generator.truth import Split
from docferry.document import RegionType
from docferry.model_store import default_store
from docferry.tables import from_html
from docferry.vision.images import Pixels
from docferry_cloud.charts.chart import Label
from docferry_cloud.diagrams import Diagram, Edge, diagram_grid, find_diagram
from docferry_cloud.engine import Effort, PageInput
from docferry_cloud.pipeline import PipelineEngine

INK = (40, 40, 40)
PLACES = {"mill": (80, 60), "barn": (320, 60), "well": (80, 220), "farm": (320, 220)}


def boxes(*names: str) -> tuple[Pixels, list[Label]]:
    """Named boxes of 100 by 50 pixels; their print is left out, only its place is told."""
    image, labels = np.full((280, 400, 3), 255, dtype=np.uint8), []
    for name in names:
        x, y = PLACES[name]
        cv2.rectangle(image, (x - 50, y - 25), (x + 50, y + 25), INK, 2)
        labels.append(Label(name, (x - 20, y - 8, x + 20, y + 8), 16))
    return image, labels


def arrow(image: Pixels, start: tuple[int, int], end: tuple[int, int]) -> None:
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
    cv2.arrowedLine(image, start, end, INK, 2, cv2.LINE_AA, tipLength=14 / length)


def test_an_arrow_leads_from_its_tail_to_its_head() -> None:
    image, labels = boxes("mill", "barn", "well")
    arrow(image, (130, 60), (267, 60))
    arrow(image, (80, 195), (80, 88))
    assert find_diagram(image, labels) == Diagram(
        ("mill", "barn", "well"), (Edge("mill", "barn"), Edge("well", "mill"))
    )


def test_arrows_that_cross_go_straight_on() -> None:
    image, labels = boxes(*PLACES)
    arrow(image, (130, 85), (270, 195))
    arrow(image, (270, 85), (130, 195))
    found = find_diagram(image, labels)
    assert found is not None
    assert {str(edge) for edge in found.edges} == {"mill -> farm", "barn -> well"}


def test_a_line_around_corners_with_a_label_in_it_is_one_arrow() -> None:
    image, labels = boxes("mill", "farm")
    cv2.line(image, (130, 60), (320, 60), INK, 2)
    arrow(image, (320, 60), (320, 193))
    image[110:130, 290:350] = 255
    labels.append(Label("sends", (295, 112, 345, 128), 16))
    assert find_diagram(image, labels) == Diagram(("mill", "farm"), (Edge("mill", "farm", "sends"),))


def test_a_line_without_heads_is_told_beside_arrows_as_what_it_is() -> None:
    image, labels = boxes("mill", "barn", "well")
    cv2.line(image, (130, 60), (270, 60), INK, 2)
    assert find_diagram(image, labels) is None
    arrow(image, (80, 85), (80, 193))
    found = find_diagram(image, labels)
    assert found is not None
    assert set(found.edges) == {Edge("mill", "barn", directed=False), Edge("mill", "well")}
    rows = diagram_grid(found).texts()
    assert rows[0] == ["From", "Link", "To"]
    assert ["mill", "—", "barn"] in rows


def test_a_picture_without_arrows_between_named_boxes_is_no_diagram() -> None:
    image, labels = boxes(*PLACES)
    assert find_diagram(image, labels) is None
    arrow(image, (130, 60), (267, 60))
    assert find_diagram(image, []) is None
    assert find_diagram(np.full((200, 200, 3), 255, dtype=np.uint8), labels) is None


def test_a_head_that_was_read_as_a_letter_stays_a_head() -> None:
    image, labels = boxes("mill", "barn")
    arrow(image, (130, 60), (267, 60))
    found = find_diagram(image, [*labels, Label(">", (250, 50, 268, 70), 20)])
    assert found is not None
    assert found.edges == (Edge("mill", "barn"),)


def test_text_beside_a_diagram_keeps_it_from_being_the_whole_picture() -> None:
    image, labels = boxes("mill", "barn")
    arrow(image, (130, 60), (267, 60))
    prose = [Label("prose", (20, y, 380, y + 14), 14) for y in range(120, 270, 20)]
    assert find_diagram(image, [*labels, *prose]) is not None
    assert find_diagram(image, [*labels, *prose], whole=True) is None


def test_drawn_diagrams_give_nearly_all_of_their_arrows() -> None:
    right = found = drawn = 0
    for seed in range(20):
        made = draw_diagram(seed, Split.CALIBRATE)
        labels = [Label(text, box, box[3] - box[1]) for text, box in made.texts]
        diagram = find_diagram(made.pixels, labels, whole=True)
        edges = {(edge.start, edge.end) for edge in diagram.edges} if diagram else set()
        truth = {(link.start, link.end) for link in made.links}
        right, found, drawn = right + len(edges & truth), found + len(edges), drawn + len(truth)
    assert right / drawn >= 0.9
    assert right / found >= 0.9


@pytest.mark.xdist_group("engine")
def test_a_diagram_by_itself_becomes_a_table_of_who_is_connected_to_whom() -> None:
    engine = PipelineEngine.load(default_store(), 2)
    drawn = draw_diagram(1, Split.CALIBRATE)
    picture = cv2.imencode(".png", drawn.pixels)[1].tobytes()
    page = engine.read(PageInput(image=picture), Effort.FAST, lambda: False)
    (region,) = [region for region in page.regions if region.type is RegionType.CHART]
    rows = from_html(region.html or "").texts()[1:]
    assert {(row[0], row[2]) for row in rows} == {(link.start, link.end) for link in drawn.links}
    assert {row[1] for row in rows} == {"→"}
