import io
import threading
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from PIL import Image

from docferry.errors import EngineError, Unavailable
from docferry_cloud.vlm import pictures
from docferry_cloud.vlm.breaker import Breaker
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask
from docferry_cloud.vlm.server import base_url
from docferry_cloud.vlm.servers import Servers, ServerTimes
from tests.cloud.vlm.openai_server import FakeServer, fake_server

QUICK = ServerTimes(connect=2.0, silence=5.0, open=30.0, pauses=(0.0, 0.0))
PAPER = np.full((56, 84, 3), 255, np.uint8)
PAPER[20:30, 10:60] = (0, 0, 200)


def question(ask=Ask.TEXT, image=PAPER, **changes):
    return Question(ask, image, **changes)


@contextmanager
def servers(*running: FakeServer, times=QUICK, **options):
    made = Servers([server.url for server in running], times=times, **options)
    try:
        yield made
    finally:
        made.close()


def never():
    return False


def test_a_question_goes_out_as_the_model_was_trained_and_comes_back_whole():
    def tell(prompt, picture, body):
        text = "<|box_start|>050 040 950 100<|box_end|>" if prompt.startswith("\nLayout") else "TOTAL 9.00"
        usage = {"prompt_tokens": 40, "completion_tokens": 3}
        return {"text": f"{text}<|im_end|>", "logprobs": [-0.1, -0.2], "usage": usage}

    with fake_server(tell) as server, servers(server, key="secret") as model:
        layout, text = model.ask([question(Ask.LAYOUT), question(tokens=7)], never)
    assert layout.text == "<|box_start|>050 040 950 100<|box_end|>"
    assert (text.text, text.finished, text.logprobs) == ("TOTAL 9.00", True, (-0.1, -0.2))
    assert (text.tokens_in, text.tokens_out) == (40, 3)
    body = next(body for body in server.bodies if body["max_tokens"] == 7)
    assert body["messages"][0] == {"role": "system", "content": "You are a helpful assistant."}
    assert [part["type"] for part in body["messages"][1]["content"]] == ["image_url", "text"]
    assert body["messages"][1]["content"][1]["text"] == "\nText Recognition:"
    assert (body["model"], body["temperature"], body["skip_special_tokens"]) == ("tiny", 0.0, False)
    assert (body["presence_penalty"], body["frequency_penalty"]) == (1.0, 0.05)
    assert body["vllm_xargs"]["no_repeat_ngram_size"] == 100
    assert set(server.tokens) == {"Bearer secret"}


@pytest.mark.parametrize("form", ["webp", "jpeg", "png"])
def test_crops_travel_small_and_arrive_as_they_are(form):
    noisy = np.random.default_rng(1).integers(200, 255, (280, 560, 3)).astype(np.uint8)
    with fake_server() as server, servers(server, form=form) as model:
        model.ask([question(image=noisy)], never)
    (data,) = server.pictures
    shown = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), np.float64)[..., ::-1]
    assert shown.shape == noisy.shape
    assert abs(shown - noisy).mean() < (1 if form == "png" else 12)
    if form != "png":
        assert len(data) < 0.8 * len(_png(noisy))


def _png(image):
    buffer = io.BytesIO()
    pictures.as_rgb(image).save(buffer, format="PNG")
    return buffer.getvalue()


def test_a_server_that_does_not_stream_is_read_too():
    with fake_server() as server, servers(server) as model:
        server.streams = False
        (reply,) = model.ask([question()], never)
    assert reply.text == "asked for Text Recognition:"


def test_replies_keep_the_order_of_the_questions():
    with fake_server(lambda prompt, picture, body: {"text": prompt}) as server, servers(server, concurrency=4) as model:
        asked = [question(Ask.FREE, None, text=f"number {n}") for n in range(12)]
        replies = model.ask(asked, never)
    assert [reply.text for reply in replies] == [f"number {n}" for n in range(12)]
    assert server.most_under_way <= 4


def test_the_server_with_the_least_to_do_is_asked():
    with ExitStack() as stack:
        one, other = stack.enter_context(fake_server()), stack.enter_context(fake_server())
        model = stack.enter_context(servers(one, other, concurrency=8, model="tiny"))
        one.gate.clear()
        other.gate.clear()
        asked = threading.Thread(target=model.ask, args=([question() for _ in range(6)], never))
        asked.start()
        for _ in range(3):
            assert one.entered.acquire(timeout=10)
            assert other.entered.acquire(timeout=10)
        # One is done with its three; the other still holds its own.
        one.gate.set()
        (reply,) = model.ask([question()], lambda: False)
        assert reply.text
        assert (len(one.bodies), len(other.bodies)) == (4, 3)
        other.gate.set()
        asked.join()


@pytest.mark.parametrize("status", [500, 502, 429, 503, 401, 404])
def test_another_server_is_asked_when_one_fails(status):
    with fake_server() as one, fake_server() as other, servers(one, other, model="tiny") as model:
        one.statuses = other.statuses = [status]
        (reply,) = model.ask([question()], never)
    assert reply.text == "asked for Text Recognition:"
    assert len(one.bodies) + len(other.bodies) == 2


def test_one_server_that_stumbles_is_asked_again():
    with fake_server() as server, servers(server) as model:
        server.statuses = [500, 500]
        assert model.ask([question()], never)[0].text
    assert len(server.bodies) == 3


def test_a_question_that_the_server_refuses_spoils_no_other():
    def tell(prompt, picture, body):
        return {"text": "fine"}

    with fake_server(tell) as server, servers(server, concurrency=1) as model:
        server.statuses = [400]
        refused, answered = model.ask([question(), question()], never)
    assert "400: " in refused.failure
    assert answered.text == "fine"
    assert len(server.bodies) == 2


def test_a_stream_that_breaks_off_is_begun_anew_and_never_taken_for_an_answer():
    with fake_server() as server, servers(server) as model:
        server.breaks_after = 1
        with pytest.raises(Unavailable, match="broke off"):
            model.ask([question()], never)
        assert len(server.bodies) == 3


@pytest.mark.parametrize(
    "raw",
    [b"data: nonsense\n\n", b"data: [1]\n\n", b'data: {"error": "out of memory"}\n\n', b"", b'data: {"choices": 7}'],
)
def test_what_is_no_completion_is_a_failure_of_the_server(raw):
    with fake_server() as server, servers(server) as model:
        server.raw = raw
        with pytest.raises(Unavailable):
            model.ask([question()], never)


def test_an_answer_cut_at_its_limit_or_ended_otherwise_says_so():
    def tell(prompt, picture, body):
        return {"text": "half", "finish": "length" if "Text" in prompt else "content_filter"}

    with fake_server(tell) as server, servers(server) as model:
        cut, filtered = model.ask([question(), question(Ask.TABLE)], never)
    assert (cut.text, cut.finished) == ("half", False)
    assert "content_filter" in filtered.failure


def test_a_loop_is_left_while_it_streams():
    with fake_server(lambda *_: {"text": "row 1 2 3\n" * 50_000}) as server, servers(server) as model:
        (reply,) = model.ask([question()], never)
        assert not reply.finished
        assert len(reply.text) < 5000
        assert server.gone.wait(10)


def test_a_server_that_is_gone_is_unavailable_and_left_alone_afterwards():
    with fake_server() as server:
        url = server.url
    now = [0.0]
    model = Servers([url], model="tiny", times=QUICK, clock=lambda: now[0])
    with pytest.raises(Unavailable, match="cannot be reached"):
        model.ask([question()], never)
    assert not model.members[0].breaker.closed
    with pytest.raises(Unavailable, match="a moment ago"):
        model.ask([question()], never)
    with fake_server(port=int(url.rpartition(":")[2])):
        now[0] = QUICK.open + 1
        assert model.ask([question()], never)[0].text
    model.close()


def test_one_server_that_dies_does_not_keep_a_page_from_the_other():
    with fake_server() as dead:
        pass
    with fake_server() as server, servers(dead, server, model="tiny") as model:
        replies = model.ask([question() for _ in range(8)], never)
    assert all(reply.text for reply in replies)
    assert len(server.bodies) == 8


def test_whoever_leaves_stops_the_server_between_two_tokens():
    left = threading.Event()

    def tell(prompt, picture, body):
        left.set()
        return {"text": "".join(map(str, range(200_000)))}

    with fake_server(tell) as server, servers(server) as model:
        with pytest.raises(EngineError, match="cancelled"):
            model.ask([question()], left.is_set)
        assert server.gone.wait(10)


def test_several_models_without_a_name_are_an_error_that_says_what_to_do():
    with fake_server() as server, servers(server) as model:
        server.models = ["one", "other"]
        with pytest.raises(Unavailable, match=r"vlm\.model"):
            model.ask([question()], never)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://gpu:8000", "http://gpu:8000"),
        ("http://gpu:8000/v1/", "http://gpu:8000"),
        ("https://gpu/proxy/v1/chat/completions", "https://gpu/proxy"),
        ("https://gpu/proxy/", "https://gpu/proxy"),
    ],
)
def test_a_servers_url_may_be_given_in_any_usual_way(given, base):
    assert base_url(given) == base


@pytest.mark.parametrize("given", ["gpu:8000", "ftp://gpu", "http://", "http://gpu/v1?x=1"])
def test_what_is_no_url_is_refused(given):
    with pytest.raises(ValueError, match="URL"):
        base_url(given)


def test_a_half_open_breaker_lets_one_call_through():
    now = [0.0]
    breaker = Breaker(lambda: now[0], most_failures=1, open_s=5.0)
    assert breaker.begin()
    breaker.failed()
    assert not breaker.begin()
    now[0] = 6.0
    assert breaker.begin()
    assert not breaker.begin()
    breaker.succeeded()
    assert breaker.begin()
    assert breaker.begin()


def test_pictures_are_made_fit_for_the_model():
    assert pictures.fitted(np.zeros((5, 1000, 3), np.uint8)).shape == (28, 1400, 3)
    assert pictures.fitted(np.zeros((3, 3, 3), np.uint8)).shape == (28, 28, 3)
    assert pictures.fitted(np.zeros((30, 2000, 3), np.uint8)).shape == (40, 2000, 3)
    assert pictures.page_picture(np.zeros((300, 200, 3), np.uint8)).shape == (1036, 1036, 3)
    large = pictures.fitted(np.zeros((3000, 3000, 3), np.uint8))
    assert pictures.visual_tokens(large) <= 2048
    # Print of 90 px is as good at 30, for a ninth of the tokens.
    assert pictures.fitted(np.zeros((300, 900, 3), np.uint8), 90.0).shape == (100, 300, 3)


def test_a_crop_is_cut_from_the_page_and_turned_counter_clockwise():
    page = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    cut = pictures.crop(page, (0.5, 0.0, 1.0, 0.5))
    assert np.array_equal(cut, page[:2, 3:])
    turned = np.asarray(Image.fromarray(page[:2, 3:]).rotate(90, expand=True))
    assert np.array_equal(pictures.crop(page, (0.5, 0.0, 1.0, 0.5), 90), turned)
    assert pictures.crop(page, (0.5, 0.5, 0.5, 0.9)) is None
