import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def drawing():
    """The module beside this file; tests are no package."""
    spec = importlib.util.spec_from_file_location("calibrating_drawing", Path(__file__).with_name("drawing.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
