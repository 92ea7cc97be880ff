"""The docs are what the code says."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["settings", "api", "metrics"])
def test_the_reference_is_fresh(generator, name: str) -> None:
    assert (DOCS / f"{name}.md").read_text() == getattr(generator, name)(), "run `make docs`"


def test_the_comments_that_the_openapi_document_quotes_are_fresh(generator) -> None:
    assert generator.COMMENTS.read_text() == generator.quoted(), "run `make docs`"


def promises() -> list[tuple[str, str]]:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (DOCS / "promises.md").read_text(), re.MULTILINE)
    return [(promise, proof) for promise, proof in rows if not set(promise) <= {"-", " "} and proof != "proof"]


def test_every_promise_names_a_proof_that_exists_or_says_not_yet() -> None:
    assert len(promises()) > 40
    for promise, proof in promises():
        named = re.findall(r"`([^`]+)`", proof)
        assert named or "not yet" in proof, promise
        for name in named:
            file, _, test = name.partition("::")
            assert (ROOT / file).is_file(), f"{promise}: {file} is not there"
            if test:
                assert re.search(rf"def {test}\b", (ROOT / file).read_text()), f"{promise}: {name} is not there"


def test_every_decision_has_context_decision_and_consequences() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert len(pages) >= 5
    numbers = [int(page.name.partition("-")[0]) for page in pages]
    assert numbers == list(range(1, len(numbers) + 1))
    for page in pages:
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name), page.name
        for word in ("Context", "Decision", "Consequences"):
            assert re.search(rf"\b{word}\b", page.read_text()), f"{page.name} has no {word}"


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
