"""A reliability diagram and a risk-coverage curve as PNG; needs matplotlib, of the extra `dev`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.calibration_worth import Numbers, reliability, risk_at_coverage


def draw(name: str, sure: Numbers, right: Numbers, folder: Path) -> None:
    """Write `<name>-reliability.png` and `<name>-risk.png` into `folder`."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace(" ", "-")
    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    points = reliability(sure, right)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o", color="black")
    axes.set(xlabel="confidence", ylabel="share of lines right", title=f"{name}: reliability", xlim=(0, 1), ylim=(0, 1))
    figure.savefig(folder / f"{stem}-reliability.png", dpi=110)
    figure = Figure(figsize=(5.5, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(*risk_at_coverage(sure, right), color="black")
    for risk in (0.02, 0.05, 0.10):
        axes.axhline(risk, color="0.8", linewidth=1)
    axes.set(xlabel="share of lines accepted", ylabel="share of those wrong", title=f"{name}: risk", xlim=(0, 1))
    axes.set_ylim(bottom=0)
    figure.savefig(folder / f"{stem}-risk.png", dpi=110)
