"""The published checkpoint's form, with a tiny model of our own in it that behaves as the published code is said to."""

import json
import shutil

import pytest
import torch

from docferry.errors import ConfigurationError, ModelError
from docferry_cloud.diffusion.published import PublishedReader
from docferry_cloud.diffusion.reader import options_for, read

CODE = '''
"""A stand-in: the calls and switches of the published model, one layer deep."""

from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

Path(__file__).with_name("ran").touch()


class Config(PreTrainedConfig):
    model_type = "mineru_diffusion"

    def __init__(self, vocab_size=320, width=16, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.width = vocab_size, width


class Language(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.width)
        self.place = nn.Embedding(512, config.width)
        self.head = nn.Linear(config.width, config.vocab_size)

    def get_input_embeddings(self):
        return self.table

    def forward(self, *, inputs_embeds, position_ids, attention_mask, past_key_values, use_cache, store_kv,
                logits_to_keep):
        assert use_cache and store_kv and attention_mask.dtype == torch.bool
        keys = (inputs_embeds + self.place(position_ids))[:, None]
        seen, values = past_key_values.update(keys, keys, 0)
        mixed = nn.functional.scaled_dot_product_attention(keys, seen, values, attn_mask=attention_mask)
        logits = self.head((keys + mixed)[:, 0, -logits_to_keep:])
        return type("Output", (), {"logits": logits})


class Model(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.language_model = Language(config)
        self.see = nn.Linear(1176, config.width)
        self.post_init()

    def _init_weights(self, module):
        pass

    def get_image_features(self, patches, grids):
        return self.see(patches).unflatten(0, (-1, 4)).mean(1)
'''


@pytest.fixture
def checkpoint(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json"):
        shutil.copy(tiny / name, folder)
    (folder / "modeling_stand_in.py").write_text(CODE)
    auto = {"AutoConfig": "modeling_stand_in.Config", "AutoModel": "modeling_stand_in.Model"}
    config = {"model_type": "mineru_diffusion", "architectures": ["Model"], "auto_map": auto, "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def with_weights(folder):
    from safetensors.torch import save_file

    torch.manual_seed(1)
    width, words = 16, 320
    shapes = {
        "language_model.table.weight": (words, width),
        "language_model.place.weight": (512, width),
        "language_model.head.weight": (words, width),
        "language_model.head.bias": (words,),
        "see.weight": (width, 1176),
        "see.bias": (width,),
    }
    save_file({name: torch.randn(shape) for name, shape in shapes.items()}, folder / "model.safetensors")


def ran(root):
    return list(root.rglob("ran"))


def test_strange_code_is_not_run_unless_somebody_allows_it(checkpoint, tmp_path):
    with pytest.raises(ConfigurationError, match="brings code of its own"):
        PublishedReader.load(checkpoint, trust_remote_code=False)
    assert not ran(tmp_path)


def test_the_published_form_reads_with_our_decoder(checkpoint, tmp_path, images):
    with_weights(checkpoint)
    reader = PublishedReader.load(checkpoint, trust_remote_code=True, block_length=4, dtype=torch.float32)
    assert ran(tmp_path)
    options = options_for(reader, threshold=0.4, longest=12)
    together = read(reader, images, options)
    alone = [read(reader, [image], options)[0] for image in images]
    assert [reading.text for reading in together] == [reading.text for reading in alone]
    assert [reading.decoded.steps for reading in together] == [reading.decoded.steps for reading in alone]
    assert len({reading.text for reading in together}) > 1


def test_another_model_is_refused_by_name(tiny):
    with pytest.raises(ModelError, match="qwen2_vl"):
        PublishedReader.load(tiny, trust_remote_code=True)


@pytest.mark.parametrize("content", [None, "no json", "[]"])
def test_a_damaged_directory_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelError, match="cannot be read"):
        PublishedReader.load(tmp_path, trust_remote_code=True)
