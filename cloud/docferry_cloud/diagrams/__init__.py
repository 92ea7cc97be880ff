"""Diagrams of boxes and arrows: who is connected to whom, by geometry and the lines that were read."""

from docferry_cloud.diagrams.diagram import Diagram, Edge, diagram_grid
from docferry_cloud.diagrams.finding import find_diagram

__all__ = ["Diagram", "Edge", "diagram_grid", "find_diagram"]
