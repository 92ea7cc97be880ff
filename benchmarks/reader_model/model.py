"""The small model's shape: tokenizer, image processor and configuration, in the files that Qwen2-VL's loaders read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, Qwen2Tokenizer, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from benchmarks.reader_model.crops import UNIT

PROMPTS = ("\nText Recognition:", "\nTable Recognition:", "\nFormula Recognition:", "\nLayout Detection:")
"""What MinerU's clients ask, each as one token; the model has learnt to answer the first."""

MASK = "<|MASK|>"
END = "<|im_end|>"
PAD = "<|endoftext|>"

_SPECIALS = (
    *(f"<|{name}|>" for name in ("im_start", "object_ref_start", "object_ref_end", "box_start", "box_end")),
    *(f"<|{name}|>" for name in ("quad_start", "quad_end", "vision_start", "vision_end", "vision_pad", "image_pad")),
    *(f"<|{name}|>" for name in ("video_pad", "ref_start", "ref_end")),
    *(f"<|rotate_{way}|>" for way in ("up", "right", "down", "left")),
    *(f"<{name}>" for name in ("fcel", "ecel", "lcel", "ucel", "xcel", "nl")),
    "txt_contd_tgt",
    MASK,
)

# The system's words and the turns' names would cost more tokens than a crop does; a model may say how it is spoken to.
_TEMPLATE = (
    "{% for message in messages if message['role'] == 'user' %}"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] in ('image', 'image_url') %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the model is.

    Attributes:
        hidden: Width of the language model; 4 heads.
        layers: Its depth.
        feed: Width of its feed-forward layers.
        seen: Width of the vision tower; 4 heads.
        depth: The vision tower's depth.
    """

    hidden: int = 144
    layers: int = 4
    feed: int = 384
    seen: int = 128
    depth: int = 4


def new_tokenizer() -> Qwen2Tokenizer:
    """One token for every byte, and one for every prompt and mark."""
    symbols = sorted(ByteLevel.alphabet())
    tokenizer = Qwen2Tokenizer(
        vocab={symbol: index for index, symbol in enumerate(symbols)},
        merges=[],
        unk_token=PAD,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(_SPECIALS),
        padding_side="left",
        model_max_length=512,
    )
    tokenizer.add_tokens(list(PROMPTS))
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def token_id(tokenizer: Qwen2Tokenizer, name: str) -> int:
    """The id of one token."""
    found = tokenizer.convert_tokens_to_ids(name)
    assert isinstance(found, int)
    return found


def new_config(tokenizer: Qwen2Tokenizer, shape: Shape) -> Qwen2VLConfig:
    """The configuration of a model with random weights."""

    def token(name: str) -> int:
        return token_id(tokenizer, name)

    head = shape.hidden // 4
    # A line is one row of visual tokens: all but a little of the rotation goes to their column, at rates that tell
    # neighbours apart (Qwen2-VL's own are made for pages and thousands of tokens).
    sections = [2, 2, head // 2 - 4]
    return Qwen2VLConfig(
        text_config={
            "vocab_size": -(-len(tokenizer) // 64) * 64,
            "hidden_size": shape.hidden,
            "intermediate_size": shape.feed,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-6,
            "initializer_range": 0.05,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "mrope_section": sections},
            "bos_token_id": token(PAD),
            "eos_token_id": token(END),
            "pad_token_id": token(PAD),
        },
        vision_config={
            "depth": shape.depth,
            "embed_dim": shape.seen,
            "hidden_size": shape.hidden,
            "num_heads": 4,
            "mlp_ratio": 3,
            "patch_size": UNIT // 2,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "initializer_range": 0.05,
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )


def save(model: Qwen2VLForConditionalGeneration, tokenizer: Qwen2Tokenizer, folder: Path) -> None:
    """Write the directory that a loader of Qwen2-VL reads."""
    end, pad = (token_id(tokenizer, name) for name in (END, PAD))
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad, do_sample=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    processor = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2VLProcessor",
        "patch_size": UNIT // 2,
        "temporal_patch_size": 2,
        "merge_size": 2,
        # A short word is one token wide; what is not a line is scaled down to what the model could never read anyway.
        "min_pixels": UNIT * UNIT,
        "max_pixels": UNIT * UNIT * 32,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1), encoding="utf-8")
