"""The list of models says what it must, and docs/licences.md says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from docferry.errors import ModelError
from docferry.model_store import packaged_manifest, parse_manifest

LICENCES = Path(__file__).parents[3] / "docs" / "licences.md"
PERMISSIVE = {"Apache-2.0", "MIT", "BSD-3-Clause"}


def test_the_packaged_list_can_be_read():
    manifest = packaged_manifest()
    assert {"ppocrv5-det", "ppocrv6-rec-small", "layout-cdla", "page-orientation"} <= set(manifest.sets["edge"])
    assert len({model.sha256 for model in manifest.models.values()}) == len(manifest.models)


def test_what_is_pulled_by_default_has_a_permissive_licence():
    manifest = packaged_manifest()
    assert {model.wheel.licence for model in manifest.select(manifest.sets)} <= PERMISSIVE


def test_the_page_of_licences_names_every_model_with_its_package():
    page = LICENCES.read_text(encoding="utf-8")
    for model in packaged_manifest().models.values():
        row = next((line for line in page.splitlines() if f"`{model.name}`" in line), "")
        assert f"{model.wheel.package} {model.wheel.version}" in row, model.name
        assert model.wheel.licence in row, model.name
        assert model.wheel.upstream in row, model.name


def test_sets_and_names_are_chosen_once_each_in_order(package):
    manifest = parse_manifest(package.toml)
    assert [model.name for model in manifest.select(["large", "edge", "all"])] == ["large", "small"]


@pytest.mark.parametrize("asked", ["pull", "path", "sha256"])
def test_an_unknown_name_is_an_error_that_suggests_the_nearest(package, store_of, asked):
    store = store_of(package)
    argument = ["lagre"] if asked == "pull" else "lagre"
    with pytest.raises(ModelError, match=r"'lagre'.*did you mean 'large'.*docferry models list"):
        getattr(store, asked)(argument)


@pytest.mark.parametrize(
    "changed",
    [
        {"large": {"path": "weights_of_ours/.."}},
        {"large": {"name": "../large"}},
        {"large": {"sha256": "12"}},
        {"large": {"colour": "blue"}},
        {"wheel": {"sha256": "g" * 64}},
        {"wheel": {"file": "../up.whl"}},
        {"wheel": {"colour": "blue"}},
    ],
)
def test_a_list_that_is_not_as_it_should_be_is_refused(make, changed):
    with pytest.raises(ModelError, match="list of models cannot be read"):
        parse_manifest(make(**changed).toml)


@pytest.mark.parametrize("text", ["", "wheel = 3", "[[wheel]]\n", "not toml"])
def test_a_text_that_is_no_list_is_refused(text):
    with pytest.raises(ModelError, match="list of models cannot be read"):
        parse_manifest(text)


def test_a_set_that_names_a_stranger_is_refused(package):
    with pytest.raises(ModelError, match="'stranger'"):
        parse_manifest(package.toml.replace('["small"]', '["stranger"]'))
