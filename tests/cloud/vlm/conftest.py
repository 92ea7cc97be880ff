from pathlib import Path

import pytest

from docferry_cloud.vlm.local import LocalModel
from tests.cloud.vlm.tiny_model import tiny_model


@pytest.fixture(scope="session")
def model_directory() -> Path:
    """The tiny trained model."""
    return tiny_model()


@pytest.fixture(scope="session")
def model(model_directory) -> LocalModel:
    """The tiny model, loaded; one for the session, as loading costs more than asking."""
    return LocalModel.load(model_directory)
