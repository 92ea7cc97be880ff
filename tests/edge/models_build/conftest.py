import pytest

from docferry.model_store import ModelStore, default_store


@pytest.fixture
def store(tmp_path):
    """A store of its own that has the pinned originals and no bundle."""
    originals = default_store()
    for name in ("ppocrv5-det", "ppocrv6-rec-small", "layout-cdla", "page-orientation"):
        path = originals.path(name)
        linked = tmp_path / "models" / path.parent.name / path.name
        linked.parent.mkdir(parents=True)
        linked.symlink_to(path)
    return ModelStore(tmp_path / "models", originals.manifest)
