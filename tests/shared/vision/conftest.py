import pytest

from docferry.model_store import default_store
from docferry.vision.detector import Detector
from docferry.vision.layout import LayoutDetector
from docferry.vision.orientation import OrientationClassifier
from docferry.vision.recogniser import Recogniser
from docferry.vision.sessions import open_network


def network(name):
    """The real network; `docferry models pull` has brought it before the tests run."""
    return open_network(default_store().path(name), threads=1)


@pytest.fixture(scope="session")
def detector():
    return Detector(network("ppocrv5-det"))


@pytest.fixture(scope="session")
def recogniser():
    return Recogniser.of(network("ppocrv6-rec-small"))


@pytest.fixture(scope="session")
def layout():
    return LayoutDetector.of(network("layout-cdla"))


@pytest.fixture(scope="session")
def orientation():
    return OrientationClassifier.of(network("page-orientation"))
