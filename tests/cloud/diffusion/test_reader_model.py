"""The small model that reads: what it is trained on is what it is shown afterwards, and training can be put down."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import nn
from torch.nn import functional

from benchmarks.diffusion import by_autoregression, by_diffusion, measured, shuffled
from benchmarks.reader_model import reading
from benchmarks.reader_model import training as trainings
from benchmarks.reader_model.build import TEST, digest, reader_model
from benchmarks.reader_model.crops import CHARACTERS, LONGEST, UNIT, Text, draw_crop, draw_text, held_out, to_grid
from benchmarks.reader_model.model import MASK, Shape, new_tokenizer, token_id
from benchmarks.reader_model.muon import orthogonal
from benchmarks.reader_model.reading import one_by_one, unseen_crops
from benchmarks.reader_model.training import BLOCK, Plan, Training, losses, new_batch, prompt, to_patches
from docferry_cloud.diffusion.pictures import TEXT_PROMPT, Encoder
from docferry_cloud.diffusion.qwen2vl import Qwen2VLReader

SMALL = Plan(steps=5, batch=4, shape=Shape(hidden=64, layers=1, feed=32, seen=32, depth=1))


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    monkeypatch.setattr(trainings, "_POOL", 2)


def crops(count, longest=LONGEST):
    rng = random.Random(4)
    return [draw_crop(draw_text(rng, unseen=False, longest=longest), rng) for _ in range(count)]


@settings(deadline=None, max_examples=30)
@given(st.integers(), st.booleans(), st.sampled_from(list(Text)))
def test_no_text_is_both_trained_on_and_asked_for(seed, unseen, kind):
    text = draw_text(random.Random(seed), unseen=unseen, kinds=(kind,))
    assert held_out(text) is unseen
    assert 1 <= len(text) <= LONGEST
    assert set(text) <= set(CHARACTERS)


def test_a_crop_is_a_line_with_ink_that_tells_where_its_characters_stand():
    for crop in crops(40):
        height, width = crop.pixels.shape
        assert UNIT <= height < 1.5 * UNIT, "a higher one would become two rows of visual tokens"
        assert crop.pixels.min() < 128 < crop.pixels.max()
        assert len(crop.middles) == len(crop.text)
        assert sorted(crop.middles) == list(crop.middles)
        assert 0 < crop.middles[0] <= crop.middles[-1] < 1
        assert width >= UNIT


def test_training_sees_what_the_image_processor_shows(tiny):
    encoder = Encoder(tiny)
    for crop in crops(6):
        encoded = encoder.encode([Image.fromarray(crop.pixels)], TEXT_PROMPT)
        grid = to_grid(crop.pixels)
        assert encoded.grids.tolist() == [[1, 2, grid.shape[1] // UNIT * 2]]
        torch.testing.assert_close(to_patches(grid[None]), encoded.patches, atol=1e-5, rtol=0)


def test_training_asks_as_the_chat_template_does(tiny):
    head, tail = prompt(new_tokenizer())
    encoded = Encoder(tiny).encode([Image.new("L", (3 * UNIT, UNIT))], TEXT_PROMPT)
    ids = encoded.ids[0].tolist()
    assert ids == [*head, *[token_id(new_tokenizer(), "<|image_pad|>")] * 3, *tail]
    assert len(ids) == 4 + 3, "marks and prompts are one token each"


@pytest.mark.parametrize("longest", [BLOCK - 1, LONGEST])
def test_a_masked_block_is_trained_as_it_is_decoded(tiny, longest):
    """Every loss of one training pass is that of the decoder's own forwards: nothing leaks, nothing is missing."""
    reader = Qwen2VLReader.load(tiny, block_length=BLOCK)
    tokenizer = new_tokenizer()
    text = "distant lamp opens"[:longest]
    crop = draw_crop(text, random.Random(1))
    batch = new_batch([crop], tokenizer)
    with torch.no_grad():
        helper = nn.Linear(64, 5 * (len(CHARACTERS) + 1) + LONGEST + 1)
        next_token, masked, _ = losses(reader.model, helper, tokenizer, batch, torch.Generator().manual_seed(2))
    hidden = trainings._hidden(batch.answers, torch.Generator().manual_seed(2))
    session = reader.start(reader.encoder.encode([Image.fromarray(crop.pixels)], TEXT_PROMPT))
    committed, logits = None, []
    for start in range(0, batch.answers.shape[1], BLOCK):
        clean = batch.answers[:, start : start + BLOCK]
        noisy = torch.where(hidden[:, start : start + BLOCK], token_id(tokenizer, MASK), clean)
        with torch.inference_mode():
            logits.append(session.score(committed, noisy))
        committed = clean
    guessed = torch.cat(logits, 1)[hidden]
    torch.testing.assert_close(functional.cross_entropy(guessed, batch.answers[hidden]), masked, atol=1e-3, rtol=1e-3)

    encoded = reader.encoder.encode([Image.fromarray(crop.pixels)], TEXT_PROMPT)
    said = batch.answers[:, : len(text) + 1]
    ids = torch.cat([encoded.ids, said], 1)
    with torch.no_grad():
        output = reader.model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pixel_values=encoded.patches,
            image_grid_thw=encoded.grids,
            mm_token_type_ids=(ids == token_id(tokenizer, "<|image_pad|>")).int(),
        )
    plain = output.logits[0, encoded.ids.shape[1] - 1 : -1]
    torch.testing.assert_close(functional.cross_entropy(plain, said[0]), next_token, atol=1e-3, rtol=1e-3)


def test_training_goes_on_where_it_was_put_down(tmp_path, monkeypatch):
    through, first = Training(SMALL), Training(SMALL)
    through.run()
    stopped = RuntimeError("the machine went away")

    def lose_power(_progress):
        first.save(tmp_path / "state.pt")
        raise stopped

    monkeypatch.setattr(trainings, "_REPORT_EVERY", 3)
    with pytest.raises(RuntimeError, match="went away"):
        first.run(lose_power)
    second = Training(SMALL)
    second.resume(tmp_path / "state.pt")
    assert second.step == 3
    second.run()
    for one, other in zip(through.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_model_is_built_once_and_named_by_what_made_it(tmp_path):
    folder = reader_model(SMALL, tmp_path)
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert reader_model(SMALL, tmp_path) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert [path.name for path in tmp_path.iterdir()] == [digest(SMALL)]
    assert digest(replace(SMALL, seed=8)) != digest(SMALL)


def test_muon_makes_steps_orthogonal():
    torch.manual_seed(0)
    for shape in ((6, 20), (20, 6)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.3


def test_shuffling_keeps_the_words_and_changes_their_order():
    rng = random.Random(1)
    for _ in range(20):
        other = shuffled("early lamp opens", rng)
        assert other != "early lamp opens"
        assert sorted(other.split()) == ["early", "lamp", "opens"]


def test_one_by_one_is_counted_up_to_the_end(tiny, monkeypatch):
    """The model's own runs, counted beside it; whoever ends early in a batch is not charged for the others."""
    reader = Qwen2VLReader.load(tiny, block_length=BLOCK)
    runs = []
    head = reader.model.lm_head.register_forward_hook(lambda *_: runs.append(1))
    images = [crop.image for crop in unseen_crops(TEST, 3)]
    (whole,) = one_by_one(reader, images[:1])
    assert (whole.tokens, whole.forwards) == (len(runs), len(runs))
    head.remove()
    # What the model says third becomes an end mark too: the answer is cut there, and costs no more than that.
    said = reader.model.generate
    third = []

    def spied(**inputs):
        output = said(**inputs)
        third.append(int(output[0, inputs["input_ids"].shape[1] + 2]))
        return output

    monkeypatch.setattr(reader.model, "generate", spied)
    one_by_one(reader, images[:1])
    monkeypatch.setattr(reading, "ENDS", (reader.encoder.tokenizer.convert_ids_to_tokens(third[0]),))
    (cut,) = one_by_one(reader, images[:1])
    assert 1 <= cut.tokens == cut.forwards <= 3 < whole.tokens


@pytest.mark.long
def test_the_model_reads_crops_it_has_never_seen_with_either_decoder():
    reader = Qwen2VLReader.load(reader_model(TEST), block_length=BLOCK)
    unseen = unseen_crops(TEST, 300)
    one = measured(unseen, by_autoregression(reader))
    several = measured(unseen, by_diffusion(reader, 0.9))
    assert one.accuracy >= 0.9
    assert several.accuracy >= one.accuracy - 0.05
    assert several.tokens_per_forward >= 2
    # The answer comes from the pixels: upside down nothing is read right.
    turned = [replace(crop, image=Image.fromarray(np.asarray(crop.image)[::-1, ::-1])) for crop in unseen[:50]]
    assert measured(turned, by_autoregression(reader)).accuracy < 0.1
