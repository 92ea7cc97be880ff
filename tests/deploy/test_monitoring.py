"""The dashboard and the alerts ask for metrics, labels and values that exist."""

import json
import re
from pathlib import Path

import pytest
import yaml

from docferry.metrics import Metric
from docferry_cloud.metrics import TABLE as CLOUD
from docferry_edge.metrics import TABLE as EDGE

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
SERIES: dict[str, Metric] = {series: metric for metric in (*CLOUD, *EDGE) for series in metric.series}


def dashboard() -> list[str]:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def alerts() -> list[str]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("expression", [*dashboard(), *alerts()])
def test_every_series_label_and_value_that_is_asked_for_exists(expression):
    names = re.findall(r"\b(?:docferry|process)_\w+", expression)
    assert names
    for name in names:
        assert name in SERIES or name == "process_resident_memory_bytes", name
    for name, selectors in re.findall(r"(docferry_\w+)\{([^}]*)\}", expression):
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', selectors):
            assert set(values.split("|")) <= set((SERIES[name].labels or {})[label]), expression


def test_every_metric_is_on_the_dashboard():
    shown = set(re.findall(r"\bdocferry_\w+", " ".join(dashboard())))
    for metric in (*CLOUD, *EDGE):
        assert shown & set(metric.series), metric.name


def test_every_alert_says_what_to_do():
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        assert {"summary", "description"} <= set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
