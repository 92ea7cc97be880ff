"""The settings table, and what must not be started."""

import hashlib
from pathlib import Path

import pytest

from docferry.errors import ConfigurationError
from docferry.settings import load
from docferry_cloud.settings import SETTINGS, CloudSettings, cloud_settings

HASH = hashlib.sha256(b"token").hexdigest()
SECRET = "whsec_" + "a2tra2tra2tra2tra2tra2tra2tra2traw=="


def _load(tmp_path: Path, text: str) -> CloudSettings:
    file = tmp_path / "cloud.toml"
    file.write_text(text)
    return cloud_settings(load(SETTINGS, file, {}))


def test_the_defaults_bind_loopback_for_a_local_tenant():
    settings = cloud_settings(load(SETTINGS, None, {}))
    assert (settings.host, settings.port, settings.tokens) == ("127.0.0.1", 50051, ())
    assert settings.retention_days == 30
    assert not settings.allow_private


def test_a_whole_file_is_read(tmp_path):
    settings = _load(
        tmp_path,
        f"""
        [listen]
        host = "0.0.0.0"
        port = 7000
        behind_proxy = true
        [data]
        directory = "{tmp_path}/data"
        [[tokens]]
        token_sha256 = "{HASH}"
        tenant = "shop"
        device = "kiosk-1"
        [webhooks]
        allow_private = true
        [[webhooks.endpoints]]
        url = "https://example.org/hook"
        secret = "{SECRET}"
        tenant = "shop"
        [[apprise]]
        url = "ntfy://topic"
        tenant = "shop"
        """,
    )
    assert settings.directory == tmp_path / "data"
    assert settings.tokens[0].tenant == "shop"
    assert settings.tokens[0].sha256 == bytes.fromhex(HASH)
    assert settings.webhooks[0].url == "https://example.org/hook"
    assert [(one.url, one.language) for one in settings.apprise] == [("ntfy://topic", "en")]
    assert settings.allow_private


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('listen.host = "0.0.0.0"', "in the clear"),
        ('listen.host = "example.org"', "in the clear"),
        ('tokens = [{token_sha256 = "abc", tenant = "a", device = "b"}]', "SHA-256"),
        (f'tokens = [{{token_sha256 = "{HASH}", tenant = "a"}}]', "device"),
        (f'tokens = [{{token_sha256 = "{HASH}", tenant = "a/b", device = "c"}}]', "tenant"),
        ('tokens = ["secret"]', "tokens"),
        ('webhooks.endpoints = [{url = "ftp://x/", secret = "s", tenant = "a"}]', "URL"),
        ('webhooks.endpoints = [{url = "http://x/", secret = "whsec_short", tenant = "a"}]', "secret"),
        ('tls.key = "key.pem"', "belong together"),
        ('apprise = [{url = "ntfy", tenant = "a"}]', "Apprise"),
        ('apprise = [{url = "ntfy://x", tenant = "a", language = "fr"}]', "language"),
        ('apprise = [{url = "ntfy://x"}]', "tenant"),
        ('listen = {host = "0.0.0.0", behind_proxy = true, reflection = true}', "listen.reflection"),
        ("listen.prot = 1", "listen.prot"),
        ("queue.limit = 0", "queue.limit"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(tmp_path, text, named):
    with pytest.raises(ConfigurationError, match=named):
        _load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('http.host = "0.0.0.0"', "in the clear"),
        (f'http.host = "0.0.0.0"\n[[tokens]]\ntoken_sha256 = "{HASH}"\ntenant = "t"\ndevice = "d"', "in the clear"),
        ('http.origins = ["https://app.example.com/path"]', "http.origins"),
        ("http.port = -2", "http.port"),
    ],
)
def test_http_binds_by_the_same_rules_and_never_sends_tokens_in_the_clear(tmp_path, text, named):
    with pytest.raises(ConfigurationError, match=named):
        _load(tmp_path, text)


def test_http_behind_a_stated_proxy_may_bind_a_public_address(tmp_path):
    token = f'[[tokens]]\ntoken_sha256 = "{HASH}"\ntenant = "t"\ndevice = "d"'
    settings = _load(tmp_path, f'[http]\nhost = "0.0.0.0"\nport = 8080\nbehind_proxy = true\n{token}')
    assert (settings.http_host, settings.http_port) == ("0.0.0.0", 8080)


def test_a_malformed_apprise_address_is_told_without_it(tmp_path):
    with pytest.raises(ConfigurationError) as failure:
        _load(tmp_path, 'apprise = [{url = "ntfy:/token", tenant = "a"}]')
    assert "token" not in str(failure.value)


def test_a_malformed_webhook_is_told_without_its_secret(tmp_path):
    with pytest.raises(ConfigurationError, match="url is no text") as refused:
        _load(tmp_path, f'webhooks.endpoints = [{{url = 5, secret = "{SECRET}", tenant = "a"}}]')
    assert SECRET not in str(refused.value)
