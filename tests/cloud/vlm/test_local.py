import json
import shutil
import socket
import threading
import time
from itertools import count

import numpy as np
import pytest

from docferry.errors import EngineError, ModelError
from docferry_cloud.vlm.local import LocalModel, Options, linear_bytes
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask
from tests.cloud.vlm.tiny_model import FORMULA, FREE, LAYOUT, PICTURE, TABLE, TEXT

pytestmark = pytest.mark.xdist_group("vlm")

ANSWERS = {Ask.LAYOUT: LAYOUT, Ask.TEXT: TEXT, Ask.TABLE: TABLE, Ask.FORMULA: FORMULA, Ask.PICTURE: PICTURE}
SIZES = ((56, 280), (84, 84), (200, 120), (40, 390))


def never():
    return False


def picture(height, width):
    return np.random.default_rng(height * width).integers(0, 256, (height, width, 3)).astype(np.uint8)


def questions(*asks):
    return [Question(ask, picture(*SIZES[number % len(SIZES)])) for number, ask in enumerate(asks)]


def test_it_answers_every_question_with_its_special_tokens(model):
    replies = model.ask([*questions(*ANSWERS), Question(Ask.FREE, picture(56, 56), text="Is it a fox?")], never)
    assert [reply.text for reply in replies] == [*ANSWERS.values(), FREE]
    for reply in replies:
        assert reply.finished
        assert len(reply.logprobs) == reply.tokens_out > 1
        assert -0.5 < min(reply.logprobs) <= max(reply.logprobs) <= 0.0
        assert reply.tokens_in > 20


def test_batches_of_one_and_of_four_answer_alike(model, model_directory):
    asked = questions(*[Ask.TEXT] * 5, *[Ask.TABLE] * 3)
    single = LocalModel.load(model_directory, Options(batch=1))
    before = single.forwards, model.forwards
    one, four = single.ask(asked, never), model.ask(asked, never)
    assert [(reply.text, reply.tokens_in, reply.tokens_out) for reply in one] == [
        (reply.text, reply.tokens_in, reply.tokens_out) for reply in four
    ]
    for alone, together in zip(one, four, strict=True):
        assert alone.logprobs == pytest.approx(together.logprobs, abs=1e-3)
    assert model.forwards - before[1] < 0.6 * (single.forwards - before[0])


def test_padding_on_the_left_is_forced_whatever_the_directory_says(model_directory, tmp_path):
    copy = tmp_path / "right"
    shutil.copytree(model_directory, copy)
    file = copy / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"padding_side": "right"}))
    replies = LocalModel.load(copy).ask(questions(*[Ask.TEXT] * 4), never)
    assert {reply.text for reply in replies} == {TEXT}


def test_the_flat_shape_of_older_checkpoints_loads_too(model_directory, tmp_path):
    copy = tmp_path / "flat"
    shutil.copytree(model_directory, copy)
    file = copy / "config.json"
    config = json.loads(file.read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    text |= {
        "rope_theta": rope["rope_theta"],
        "rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]},
    }
    file.write_text(json.dumps({**text, **config, "model_type": "qwen2_vl"}))
    (copy / "chat_template.jinja").rename(copy / "aside")
    (copy / "chat_template.json").write_text(json.dumps({"chat_template": (copy / "aside").read_text()}))
    (reply,) = LocalModel.load(copy).ask(questions(Ask.TABLE), never)
    assert reply.text == TABLE


def test_nothing_is_asked_of_any_hub(model_directory, monkeypatch):
    def refuse(*_):
        raise AssertionError("the loader goes to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert LocalModel.load(model_directory).ask(questions(Ask.TEXT), never)[0].text == TEXT


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json", "preprocessor_config.json"])
def test_a_directory_that_lacks_something_is_refused_by_name(model_directory, tmp_path, missing):
    copy = tmp_path / "copy"
    shutil.copytree(model_directory, copy)
    (copy / missing).unlink()
    # A pickle would run code: it is no weights file here.
    (copy / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ModelError, match=str(copy)):
        LocalModel.load(copy)


def test_another_architecture_is_refused(model_directory, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama", "auto_map": {"AutoModel": "evil.Model"}}')
    with pytest.raises(ModelError, match="llama"):
        LocalModel.load(tmp_path)


def test_whoever_leaves_stops_his_row_between_two_tokens_and_nobody_elses(model):
    asked = count()
    before = model.forwards
    with pytest.raises(EngineError, match="cancelled"):
        model.ask(questions(Ask.LAYOUT), lambda: next(asked) > 10)
    assert model.forwards - before < 20


def test_an_answer_at_its_limit_is_cut(model):
    (reply,) = model.ask([Question(Ask.TEXT, picture(56, 280), tokens=5)], never)
    assert (reply.text, reply.finished, reply.tokens_out) == (TEXT[:5], False, 5)


def test_questions_of_several_callers_share_a_batch(model):
    """While one batch is under way three callers come; the next batch is all of theirs."""
    entered, replies = threading.Event(), {}

    def slow():
        # Asked before the batch, and then between tokens: there it goes on once all three wait.
        if next(asked):
            entered.set()
            return not waiting.wait(20)
        return False

    waiting, asked = threading.Event(), count()
    before = model.forwards
    first = threading.Thread(target=model.ask, args=(questions(Ask.TABLE), slow))
    first.start()
    assert entered.wait(20)
    others = [
        threading.Thread(target=lambda n=n: replies.update({n: model.ask([questions(Ask.TEXT)[0]], never)}))
        for n in range(3)
    ]
    for thread in others:
        thread.start()
    until = time.monotonic() + 20
    while len(model._batches._waiting) < 3 and time.monotonic() < until:
        threading.Event().wait(0.005)
    waiting.set()
    for thread in (first, *others):
        thread.join()
    assert {reply.text for (reply,) in replies.values()} == {TEXT}
    table, text = len(TABLE), len(TEXT)
    assert model.forwards - before <= table + text + 4


def test_eight_bit_weights_answer_alike_in_a_quarter_of_the_room(model, model_directory):
    small = LocalModel.load(model_directory, Options(quantize="int8"))
    asked = questions(*ANSWERS)
    assert [reply.text for reply in small.ask(asked, never)] == [reply.text for reply in model.ask(asked, never)]
    assert linear_bytes(small.network) <= 0.35 * linear_bytes(model.network)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_held_as_asked(model_directory, dtype):
    import torch

    held = LocalModel.load(model_directory, Options(dtype=dtype))
    assert {weight.dtype for weight in held._model.parameters()} == {getattr(torch, dtype)}
    assert held.ask(questions(Ask.TEXT), never)[0].tokens_out > 0
    assert held.provenance.startswith("cloud:vlm-tiny-vlm-")
