"""Chat completions, called with OpenAI's own client."""

import base64

import httpx
import openai
import pytest
import pytest_asyncio

from docferry_cloud.gateway.chat import NOT_FOUND

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def chat(http):
    async with openai.AsyncOpenAI(base_url=f"{http.url}/v1", api_key=http.caller.token, max_retries=0) as client:
        yield client


def messages(png, prompt, *more):
    uri = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    picture = {"type": "image_url", "image_url": {"url": uri}}
    return [{"role": "user", "content": [picture, *more, {"type": "text", "text": prompt}]}]


async def test_a_question_about_a_picture_is_answered(chat, small_png):
    answer = await chat.chat.completions.create(model="docferry", messages=messages(small_png, "What is the total?"))
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("9.00", "stop")
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (4, 5)
    assert answer.model_extra["docferry"]["evidence"]


async def test_what_the_document_does_not_hold_is_said_so(chat, small_png):
    asked = messages(small_png, "Who signed the lease?")
    answer = await chat.chat.completions.create(model="docferry", messages=asked)
    assert answer.choices[0].message.content == NOT_FOUND


async def test_without_a_question_the_document_comes_as_markdown(chat, small_png):
    for model, prompt in (("docferry", ""), ("docferry-markdown", "Text Recognition:")):
        answer = await chat.chat.completions.create(model=model, messages=messages(small_png, prompt))
        assert "Invoice No: 4711" in answer.choices[0].message.content


@pytest.mark.parametrize(("model", "expected"), [("docferry", "9.00"), ("docferry-markdown", "Invoice No: 4711")])
async def test_a_streamed_answer_comes_in_chunks(chat, small_png, model, expected):
    options = {"include_usage": True}
    stream = await chat.chat.completions.create(
        model=model, messages=messages(small_png, "What is the total?"), stream=True, stream_options=options
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert expected in "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens > 4
    assert len({chunk.id for chunk in chunks}) == 1


async def test_a_stream_ends_with_done(http, small_png):
    body = {"model": "docferry", "messages": messages(small_png, "What is the total?"), "stream": True}
    answer = await http.client.post("/v1/chat/completions", json=body)
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_several_pictures_are_pages_of_one_document(chat, http, small_png):
    more = messages(small_png + b"\0", "")[0]["content"][0]
    asked = messages(small_png, "What is the total?", more)
    answer = await chat.chat.completions.create(model="docferry", messages=asked)
    analysis = await http.caller.get(answer.model_extra["docferry"]["analysis_id"])
    assert len(analysis.versions[-1].interpretation.document.pages) == 2


async def test_the_models_are_listed(chat):
    assert [model.id async for model in chat.models.list()] == ["docferry", "docferry-markdown"]


async def test_addresses_are_refused_and_never_fetched(chat, receiver_url):
    url, asked = receiver_url
    picture = {"type": "image_url", "image_url": {"url": url}}
    with pytest.raises(openai.BadRequestError) as failure:
        await chat.chat.completions.create(model="docferry", messages=[{"role": "user", "content": [picture]}])
    assert failure.value.body["param"] == "messages"
    assert "not fetched" in failure.value.body["message"]
    assert asked == []


@pytest_asyncio.fixture(loop_scope="module")
async def receiver_url():
    import asyncio

    asked = []
    server = await asyncio.start_server(lambda reader, writer: asked.append(writer.close()), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a.png", asked


async def test_errors_are_those_the_client_knows(http, chat, small_png):
    with pytest.raises(openai.NotFoundError):
        await chat.chat.completions.create(model="gpt-4o", messages=messages(small_png, "?"))
    with pytest.raises(openai.BadRequestError) as failure:
        await chat.chat.completions.create(model="docferry", messages=[{"role": "user", "content": "hello"}])
    assert failure.value.body["type"] == "invalid_request_error"
    async with openai.AsyncOpenAI(base_url=f"{http.url}/v1", api_key="nobody", max_retries=0) as nobody:
        with pytest.raises(openai.AuthenticationError) as refused:
            await nobody.chat.completions.create(model="docferry", messages=messages(small_png, "?"))
    assert refused.value.body["type"] == "authentication_error"


@pytest.mark.parametrize(
    "change",
    [
        {"n": 2},
        {"tools": [{"type": "function"}]},
        {"response_format": {"type": "json_object"}},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [5]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": [{"type": "audio"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
    ],
)
async def test_what_is_not_offered_is_refused(http, small_png, change):
    body = {"model": "docferry", "messages": messages(small_png, "?")} | change
    answer: httpx.Response = await http.client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("odd", [{"model": []}, {"model": {}}, {"model": "docferry", "n": []}, {"n": {}}])
async def test_values_of_another_kind_are_refused_and_break_nothing(http, odd):
    answer = await http.client.post("/v1/chat/completions", json={"messages": [], **odd})
    assert answer.status_code in {400, 404}
