"""Bar, line and pie charts measured: the axis by its printed numbers, the rest by colour and geometry."""

from docferry_cloud.charts.chart import Chart, ChartKind, Label, Series, chart_grid
from docferry_cloud.charts.measure import measured

__all__ = ["Chart", "ChartKind", "Label", "Series", "chart_grid", "measured"]
