"""A real transformer at work: batches, the cache, and what each position sees."""

from dataclasses import replace

import pytest
import torch
from PIL import Image

from docferry.errors import EngineError
from docferry_cloud.diffusion.decoding import decode
from docferry_cloud.diffusion.pictures import IMAGE, MASK, TEXT_PROMPT, with_pictures
from docferry_cloud.diffusion.qwen2vl import Qwen2VLLanguage, Qwen2VLReader
from docferry_cloud.diffusion.reader import options_for, read
from docferry_cloud.diffusion.session import Past

BLOCK = 4


@pytest.fixture
def options(reader):
    return replace(options_for(reader, threshold=0.5, longest=18), stop_ids=frozenset(range(40)))


class Forgetful:
    """The same model without a cache: everything is computed again for every forward, one row at a time."""

    def __init__(self, reader, image, past):
        self.rows = 1
        self.model, self.past = reader.model, past
        encoded = reader.encoder.encode([image], TEXT_PROMPT)
        language = self.model.model
        at = encoded.ids == reader.encoder.token(IMAGE)
        features = language.visual(encoded.patches, grid_thw=encoded.grids).pooler_output
        self.prompt = with_pictures(language.get_input_embeddings()(encoded.ids), at, features)
        self.places, _ = language.get_rope_index(encoded.ids, at.int(), image_grid_thw=encoded.grids)
        self.said = torch.zeros((1, 0), dtype=torch.long)

    def score(self, committed, block):
        if committed is not None:
            self.said = torch.cat([self.said, committed], 1)
        tokens = torch.cat([self.said, block], 1)
        embeds = torch.cat([self.prompt, self.model.get_input_embeddings()(tokens)], 1)
        first = self.places.max() + 1
        behind = torch.arange(first, first + tokens.shape[1]).expand(3, 1, -1)
        return Qwen2VLLanguage(self.model)._model.lm_head(
            self.model.model.language_model(
                inputs_embeds=embeds,
                position_ids=torch.cat([self.places, behind], 2),
                attention_mask={"full_attention": self.sees(block.shape[1])[None, None]},
            ).last_hidden_state[:, -block.shape[1] :]
        )

    def sees(self, length):
        prompt, said = self.prompt.shape[1], self.said.shape[1]
        whole = prompt + said + length
        sees = torch.zeros(whole, whole, dtype=torch.bool)
        for row in range(whole):
            for column in range(whole):
                if row >= prompt + said:
                    sees[row, column] = True
                elif self.past is Past.CAUSAL:
                    sees[row, column] = column <= row
                else:  # blocks, counted from the end of the prompt both ways
                    sees[row, column] = (column - prompt) // BLOCK <= (row - prompt) // BLOCK
        return sees

    def keep(self, rows):
        assert list(rows) == [0]


@pytest.mark.parametrize("past", list(Past))
def test_the_cache_changes_nothing(tiny, images, options, past):
    reader = Qwen2VLReader.load(tiny, block_length=BLOCK, past=past)
    for image in images:
        (answer,) = decode(reader.start(reader.encoder.encode([image], TEXT_PROMPT)), options)
        with torch.inference_mode():
            (plain,) = decode(Forgetful(reader, image, past), options)
        assert answer.tokens == plain.tokens
        assert (answer.steps, answer.stop_step, answer.forwards) == (plain.steps, plain.stop_step, plain.forwards)
        assert answer.confidence == pytest.approx(plain.confidence, abs=1e-4)


def test_a_batch_of_four_reads_like_four_alone(reader, images, options):
    together = read(reader, images, options)
    alone = [read(reader, [image], options)[0] for image in images]
    assert [reading.text for reading in together] == [reading.text for reading in alone]
    assert [reading.decoded.steps for reading in together] == [reading.decoded.steps for reading in alone]
    assert [reading.decoded.forwards for reading in together] == [reading.decoded.forwards for reading in alone]
    ends = {reading.decoded.stop_step for reading in alone}
    assert len(ends) > 1, "rows that end at different times are the point"


def test_greedy_reading_is_repeatable(reader, images, options):
    assert read(reader, images, options) == read(reader, images, options)


def test_a_threshold_of_one_is_one_token_a_forward(reader, images):
    options = replace(options_for(reader, threshold=1.0, longest=12), stop_ids=frozenset())
    for reading in read(reader, images, options):
        assert sorted(reading.decoded.steps) == list(range(1, 13))
        assert reading.decoded.forwards == 12


def test_a_lower_threshold_takes_fewer_forwards(reader, images):
    forwards = []
    for threshold in (1.0, 0.5, 0.0):
        options = replace(options_for(reader, threshold=threshold, longest=12), stop_ids=frozenset())
        forwards.append(sum(reading.decoded.forwards for reading in read(reader, images, options)))
    assert forwards[0] == 4 * 12
    assert forwards[0] > forwards[1] > forwards[2]
    assert forwards[2] == 4 * 3


def test_the_answer_depends_on_the_pixels(reader, options):
    options = replace(options, stop_ids=frozenset())
    light, dark = (Image.new("L", (84, 28), tone) for tone in (255, 0))
    one, other = read(reader, [light, dark], options)
    assert one.text != other.text


def test_pieces_stand_in_step_with_the_forwards_that_fixed_them(reader, images, options):
    for reading in read(reader, images, options):
        assert len(reading.pieces) == len(reading.decoded.steps) == len(reading.decoded.tokens)
        assert MASK not in reading.text


def test_no_pictures_no_readings(reader, options):
    assert read(reader, [], options) == []


def test_reading_stops_when_nobody_waits(reader, images, options):
    with pytest.raises(EngineError, match="cancelled"):
        read(reader, images, options, cancelled=lambda: True)
