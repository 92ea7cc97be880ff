"""The result page: plain, safe, in two languages."""

import base64
import html.parser
import uuid

import pytest
import pytest_asyncio

from docferry_cloud.phone.words import WORDS, language_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.text, self.lang, self.inline = [], [], "", "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.links += [found["href"]] if "href" in found else []
        self.lang = found["lang"] if tag == "html" else self.lang

    def handle_data(self, data):
        self.text += data
        self.inline += data.strip() if self.lasttag in {"script", "style"} else ""


@pytest_asyncio.fixture(loop_scope="module")
async def analysis_id(http, small_png):
    body = {"image": base64.b64encode(small_png).decode(), "file_name": "<script>alert(1)</script>.png"}
    return (await http.client.post("/v1/read", json=body)).json()["analysis_id"]


async def test_it_shows_fields_text_tables_and_exports(http, analysis_id):
    answer = await http.client.get(f"/r/{analysis_id}")
    assert answer.headers["content-type"].startswith("text/html")
    seen = Seen(answer.text)
    assert {"h1", "table", "details", "caption"} <= set(seen.tags)
    assert "Tea & cake" in seen.text
    assert "invoice number" in seen.text
    assert "4711" in seen.text
    exports = [link for link in seen.links if link.startswith(f"/r/{analysis_id}/export?format=")]
    assert len(exports) == 6
    for link in exports:
        assert (await http.client.get(link)).status_code == 200


async def test_nothing_of_the_document_becomes_markup_and_nothing_inline_runs(http, analysis_id):
    answer = await http.client.get(f"/r/{analysis_id}")
    seen = Seen(answer.text)
    assert not {"b", "iframe", "style"} & set(seen.tags)
    assert seen.tags.count("script") == 1
    assert seen.inline == ""
    assert "<script>alert(1)</script>.png" in seen.text
    assert "Corner <b>Shop</b>" in seen.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy


async def test_it_speaks_the_readers_language(http, analysis_id):
    answer = await http.client.get(f"/r/{analysis_id}", headers={"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
    assert Seen(answer.text).lang == "zh-Hans"
    assert WORDS["zh"]["fields"] in answer.text
    assert answer.headers["content-language"] == "zh"


async def test_a_document_that_is_not_finished_says_so(http, make_envelope, make_part):
    waiting = await http.caller.submit(make_envelope(parts=[make_part(b"x", inline=False)]))
    text = (await http.client.get(f"/r/{waiting.analysis_id}")).text
    assert WORDS["en"]["sending"] in text
    assert WORDS["en"]["reload"] in text


async def test_who_may_not_see_it_gets_a_page_that_says_so(http, analysis_id):
    async with http.nobody() as nobody, http.other() as other:
        for client, code in ((nobody, 401), (other, 404)):
            answer = await client.get(f"/r/{analysis_id}")
            assert answer.status_code == code
            assert Seen(answer.text).tags.count("h1") == 1
            assert "4711" not in answer.text
    missing = await http.client.get(f"/r/{uuid.uuid4()}")
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        ("", "en"),
        ("de", "en"),
        ("zh", "zh"),
        ("en;q=0.5, zh-Hans;q=0.9", "zh"),
        ("zh;q=0, en", "en"),
        ("zh;q=high", "en"),
        ("ZH-tw", "zh"),
    ],
)
async def test_accept_language_is_followed(accept, language):
    assert language_of(accept) == language


async def test_both_languages_have_every_word():
    assert WORDS["en"].keys() == WORDS["zh"].keys()
