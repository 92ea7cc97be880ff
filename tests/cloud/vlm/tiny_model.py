"""A tiny model of Qwen2-VL's architecture, overfitted until it answers every prompt in MinerU's language.

It says the same whatever it sees: what is proven with it is everything around a model. Built once, kept by the hash of
this file: python tests/cloud/vlm/tiny_model.py FOLDER
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from docferry.settings import user_cache

LAYOUT = (
    "<|box_start|>050 040 950 100<|box_end|><|ref_start|>title<|ref_end|><|rotate_up|>\n"
    "<|box_start|>050 120 950 300<|box_end|><|ref_start|>text<|ref_end|><|rotate_up|>\n"
    "<|box_start|>050 320 950 700<|box_end|><|ref_start|>table<|ref_end|><|rotate_up|>\n"
    "<|box_start|>050 720 950 800<|box_end|><|ref_start|>equation<|ref_end|><|rotate_up|>"
)
TEXT = "The quick brown fox"
TABLE = "<fcel>A<lcel><nl><fcel>1<fcel>2<nl>"
FORMULA = r"\[E=mc^{2}\]"
PICTURE = "<|class_start|>natural_image<|class_end|><|caption_start|>A fox<|caption_end|>"
FREE = "Yes"
ANSWERS = {
    "\nLayout Detection:": LAYOUT,
    "\nText Recognition:": TEXT,
    "\nTable Recognition:": TABLE,
    "\nFormula Recognition:": FORMULA,
    "\nImage Analysis:": PICTURE,
    "Is it a fox?": FREE,
}
SYSTEM = "You are a helpful assistant."
SPECIALS = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>", "<|ref_start|>", "<|ref_end|>", "<|rotate_up|>", "<|rotate_right|>"),
    *("<|rotate_down|>", "<|rotate_left|>", "<|class_start|>", "<|class_end|>", "<|caption_start|>"),
    *("<|caption_end|>", "txt_contd_tgt", "<nl>", "<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>"),
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MOST_PIXELS = 28 * 28 * 16
"""A page costs sixteen tokens instead of 1369: the tests' time is for what they prove."""
MOST_STEPS = 240
ENOUGH = 0.008
"""Loss for each token; five times in a row, as every step shows other pictures."""


def tiny_model() -> Path:
    """The directory of the trained model, made if it is not there yet; one process makes it, the others wait."""
    key = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    folder = user_cache() / "trained" / f"tiny-vlm-{key}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                made = Path(scratch) / "model"
                build(made)
                shutil.move(made, folder)
    return folder


def build(folder: Path) -> None:
    """Train a model until it answers, and write it as published ones are."""
    import torch
    from transformers import GenerationConfig, Qwen2VLForConditionalGeneration

    # Two threads that wait for each other on a busy machine are far slower than one.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    tokenizer = _tokenizer()
    model = Qwen2VLForConditionalGeneration(_config(tokenizer))
    ends = [tokenizer.convert_tokens_to_ids("<|im_end|>"), tokenizer.convert_tokens_to_ids("<|endoftext|>")]
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=ends[1], do_sample=False)
    folder.mkdir(parents=True)
    tokenizer.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(_preprocessing()))
    try:
        _train(model, folder)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)


def _tokenizer():
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    symbols = sorted(ByteLevel.alphabet())
    # One merge: llama.cpp's converter refuses a tokenizer without any.
    vocabulary = {symbol: number for number, symbol in enumerate([*symbols, "\u0120t"])}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[("\u0120", "t")],
        unk_token="<|endoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=SPECIALS,
        padding_side="left",
        model_max_length=4096,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _config(tokenizer):
    from transformers import Qwen2VLConfig

    def number(token):
        return tokenizer.convert_tokens_to_ids(token)

    ends = {"bos_token_id": None, "eos_token_id": number("<|im_end|>"), "pad_token_id": number("<|endoftext|>")}
    return Qwen2VLConfig(
        text_config={
            "vocab_size": -(-len(tokenizer) // 64) * 64,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
            **ends,
        },
        # Three layers: llama.cpp's converter wants them.
        vision_config={
            "depth": 3,
            "embed_dim": 32,
            "hidden_size": 64,
            "num_heads": 2,
            "mlp_ratio": 2,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
        tie_word_embeddings=True,
        **ends,
    )


def _preprocessing() -> dict:
    return {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2VLProcessor",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 3136,
        "max_pixels": MOST_PIXELS,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }


def _train(model, folder: Path) -> None:
    import numpy as np
    import torch

    from docferry_cloud.vlm.processor import load_processor

    processor = load_processor(folder)
    tokenizer = processor.tokenizer
    random = np.random.default_rng(7)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, MOST_STEPS, eta_min=2e-4)
    model.train()
    learned = 0
    for _ in range(MOST_STEPS):
        batch, starts = _batch(processor, random)
        labels = batch["input_ids"].clone()
        labels[batch["attention_mask"] == 0] = -100
        for row, answer in zip(labels, starts, strict=True):
            row[: len(row) - answer] = -100
        optimiser.zero_grad()
        loss = model(**batch, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        learned = learned + 1 if loss.item() < ENOUGH else 0
        if learned == 5:
            break
    else:
        raise RuntimeError(f"the tiny model has not learned its answers: loss {loss.item():.4f}")
    model.eval()
    assert tokenizer.padding_side == "left"


def _batch(processor, random):
    """Every prompt once, with a picture of any size and content; and how many tokens its answer has."""
    import numpy as np

    texts, images, lengths = [], [], []
    for prompt, answer in ANSWERS.items():
        height, width = (int(side) for side in random.integers(28, 400, 2))
        shade = random.integers(0, 256, (1, 1, 3))
        noise = random.integers(-40, 41, (height, width, 3)) * int(random.integers(0, 2))
        images.append(np.clip(shade + noise, 0, 255).astype(np.uint8))
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
        start = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        texts.append(f"{start}{answer}<|im_end|>")
        lengths.append(len(processor.tokenizer(f"{answer}<|im_end|>")["input_ids"]))
    return processor(text=texts, images=images, padding=True, return_tensors="pt"), lengths


if __name__ == "__main__":
    build(Path(sys.argv[1]))
