"""The routing benchmark's curves as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Row = dict[str, Any]

_STYLES = {
    "naive": ("scaled down", "s:", "tab:orange"),
    "random": ("random", "x--", "tab:gray"),
    "threshold": ("threshold on the mean score", "v--", "tab:red"),
    "shipped": ("ours, shipped calibration", "o:", "tab:cyan"),
    "ours": ("ours", "o-", "tab:blue"),
    "oracle": ("oracle", "^-", "tab:green"),
}
_AXES = {
    "bytes_share": "bytes on the wire / bytes of the originals",
    "cloud_cpu_share": "cloud CPU / CPU of the cloud alone",
    "escalated": "share of documents of which pictures go up",
}


def draw(name: str, row: Row, folder: Path) -> None:
    """Write `<name>-<axis>.png`, accuracy against each axis, and `<name>-unit.png`, the line-crop curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for axis, label in _AXES.items():
        figure, (words, fields) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
        for panel, measure in ((words, "word_f1"), (fields, "field_f1")):
            for kind, (title, style, colour) in _STYLES.items():
                points = sorted((max(one[axis], 1e-4), one[measure]) for one in row[kind])
                panel.plot(*zip(*points, strict=True), style, color=colour, label=title, markersize=4)
            for kind, title in (("edge_only", "edge only"), ("cloud_only", "cloud only")):
                panel.axhline(row[kind][measure], linewidth=0.8, color="black")
                panel.annotate(title, (0.01, row[kind][measure]), xycoords=("axes fraction", "data"), fontsize=7)
            panel.set_xlabel(label)
            panel.set_ylabel({"word_f1": "word F1", "field_f1": "field F1"}[measure])
            if axis == "bytes_share":
                panel.set_xscale("log")
            panel.grid(visible=True, linewidth=0.3)
        words.legend(fontsize=7)
        figure.suptitle(name)
        figure.savefig(folder / f"{name}-{axis}.png", dpi=110)
        plt.close(figure)
    if row.get("unit"):
        _draw_unit(name, row["unit"], folder)


def _draw_unit(name: str, unit: Row, folder: Path) -> None:
    from matplotlib import pyplot as plt

    figure, panel = plt.subplots(figsize=(6, 5), layout="constrained")
    for kind, values in unit["curves"].items():
        rates = [index / (len(values) - 1) for index in range(len(values))]
        panel.plot(rates, values, color=_STYLES[kind][2], label=f"{_STYLES[kind][0]} (area {unit['area'][kind]:.3f})")
    panel.axvline(0.25, linewidth=0.6, color="black")
    panel.set_xlabel("share of the pixels of all line crops")
    panel.set_ylabel("gain in right lines / the most there is")
    panel.legend(fontsize=7)
    panel.grid(visible=True, linewidth=0.3)
    figure.suptitle(f"{name}: sending single lines")
    figure.savefig(folder / f"{name}-unit.png", dpi=110)
    plt.close(figure)
