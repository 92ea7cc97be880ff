"""Training: next-token loss and masked-block loss in one pass over one set of weights.

The sequence is prompt, answer, and the answer again with some tokens of every block masked. The answer itself is
causal, as an autoregressive reader sees it; a masked block sees the prompt, the *answer's* earlier blocks and, both
ways, itself, as block-wise diffusion decodes. What helps it see (and is thrown away afterwards) is a head on every
visual token that names the characters in it and how many came before.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Qwen2Tokenizer, Qwen2VLForConditionalGeneration

from benchmarks.reader_model.crops import CHARACTERS, LONGEST, UNIT, Crop, Text, draw_crop, draw_text, to_grid
from benchmarks.reader_model.model import END, MASK, PAD, PROMPTS, Shape, new_config, new_tokenizer, token_id
from benchmarks.reader_model.muon import Muon

BLOCK = 12
"""Positions of a block: most answers fit into one."""

_SLOTS = 5
_NOTHING = len(CHARACTERS)
_POOL = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What to train, how long and how hard; together with this package's files it determines the weights.

    Attributes:
        steps: Batches.
        kinds: What is written on the crops.
        longest: Characters of the longest line.
        batch: Crops in each batch.
        rate: The highest learning rate.
        shape: The model's size.
        seed: Of weights and crops.
    """

    steps: int
    kinds: tuple[Text, ...] = tuple(Text)
    longest: int = LONGEST
    batch: int = 128
    rate: float = 4e-3
    shape: Shape = field(default_factory=Shape)
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Batch:
    """Crops of one width.

    Attributes:
        patches: (B * 2 * 2N) x 1176, as the image processor gives them for one row of N visual tokens.
        answers: B x L, L a multiple of `BLOCK`: characters, end mark, padding.
        slots: B x N x 5, the characters whose middles lie in each visual token.
        before: B x N, how many characters lie left of it.
    """

    patches: Tensor
    answers: Tensor
    slots: Tensor
    before: Tensor


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training stands; losses in nats per token, seconds of processor time."""

    step: int
    next_token: float
    masked: float
    seen: float
    cpu_s: float


class Training:
    """A training that can be put down and taken up again: every batch follows from its number alone."""

    def __init__(self, plan: Plan) -> None:
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.tokenizer = new_tokenizer()
        self.model = Qwen2VLForConditionalGeneration(new_config(self.tokenizer, plan.shape))
        self.helper = nn.Linear(plan.shape.hidden, _SLOTS * (_NOTHING + 1) + LONGEST + 1)
        self.step = 0
        self.cpu_s = 0.0
        # Muon learns from far fewer crops than AdamW does; it is for matrices between layers alone.
        inner = [weight for name, weight in self.model.named_parameters() if weight.ndim == 2 and "embed" not in name]
        known = {id(weight) for weight in inner}
        outer = [weight for weight in self._weights() if id(weight) not in known]
        self._optimizers: tuple[torch.optim.Optimizer, ...] = (
            Muon(inner, plan.rate),
            torch.optim.AdamW(outer, lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.0),
        )

    def run(self, report: Callable[[Progress], None] | None = None) -> None:
        """Train to the end of the plan, on one thread: two of them wait for each other more than they help."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.model.train()
        while self.step < self.plan.steps:
            start = time.process_time()
            batches = drawn_batches(self.plan, self.step // _POOL, self.tokenizer)
            for batch in batches[self.step % _POOL : self.plan.steps - self.step + self.step % _POOL]:
                next_token, masked, seen = (part.item() for part in self._learn(batch))
                self.cpu_s += time.process_time() - start
                start = time.process_time()
                if report is not None and self.step % 25 == 0:
                    report(Progress(self.step, next_token, masked, seen, self.cpu_s))
        self.model.eval()
        torch.set_num_threads(threads)

    def save(self, path: Path) -> None:
        """Write down where it stands."""
        new = path.with_suffix(".new")
        optimizers = [optimizer.state_dict() for optimizer in self._optimizers]
        state = {"step": self.step, "cpu_s": self.cpu_s, "optimizers": optimizers}
        torch.save(state | {"model": self.model.state_dict(), "helper": self.helper.state_dict()}, new)
        new.replace(path)

    def resume(self, path: Path) -> None:
        """Go on from where `save` was called, with the same plan."""
        state = torch.load(path, weights_only=True)
        self.step, self.cpu_s = int(state["step"]), float(state["cpu_s"])
        self.model.load_state_dict(state["model"])
        self.helper.load_state_dict(state["helper"])
        for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def _weights(self) -> list[nn.Parameter]:
        return [*self.model.parameters(), *self.helper.parameters()]

    def _learn(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        noise = torch.Generator().manual_seed(self.plan.seed * 1_000_003 + self.step)
        parts = losses(self.model, self.helper, self.tokenizer, batch, noise)
        # Seeing comes first: without it there is nothing to decode. Filling in masks is the harder of the two tasks.
        share = max(0.0, 1 - self.step / (0.7 * self.plan.steps))
        (parts[0] + 1.5 * parts[1] + share * parts[2]).backward()
        nn.utils.clip_grad_norm_(self._weights(), 1.0)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.plan.rate * self._pace()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return parts

    def _pace(self) -> float:
        """The learning rate as a share of the highest: a short rise, a level, and a fall to nothing."""
        done = (self.step + 1) / self.plan.steps
        return min(1.0, done / 0.04, max(0.02, (1 - done) / 0.5))


def losses(
    model: Qwen2VLForConditionalGeneration,
    helper: nn.Linear,
    tokenizer: Qwen2Tokenizer,
    batch: Batch,
    noise: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """Next-token, masked-block and seeing loss."""
    rows, length = batch.answers.shape
    columns = batch.before.shape[1]
    grid = torch.tensor([[1, 2, 2 * columns]] * rows)
    visual = model.model.visual(batch.patches, grid_thw=grid).pooler_output.view(rows, columns, -1)
    head, tail = prompt(tokenizer)
    embed = model.model.language_model.embed_tokens
    mask_id, end_id = (token_id(tokenizer, name) for name in (MASK, END))
    hidden = _hidden(batch.answers, noise)
    noisy = torch.where(hidden, mask_id, batch.answers)
    sequence = torch.cat(
        [
            embed(torch.tensor(head)).expand(rows, -1, -1),
            visual,
            embed(torch.tensor(tail)).expand(rows, -1, -1),
            embed(batch.answers),
            embed(noisy),
        ],
        dim=1,
    )
    start = len(head) + columns + len(tail)
    output = model.model.language_model(
        inputs_embeds=sequence,
        position_ids=_positions(len(head), columns, len(tail), length).expand(3, rows, -1),
        attention_mask={"full_attention": _attention(start, length)},
        use_cache=False,
    ).last_hidden_state
    causal = model.lm_head(output[:, start - 1 : start + length - 1])
    counted = (batch.answers == end_id).cumsum(1) - (batch.answers == end_id).long() == 0
    next_token = functional.cross_entropy(causal[counted], batch.answers[counted])
    guessed = model.lm_head(output[:, start + length :][hidden])
    masked = functional.cross_entropy(guessed, batch.answers[hidden])
    return next_token, masked, _seeing(helper(visual), batch)


def prompt(tokenizer: Qwen2Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens before and behind the visual ones, as the chat template writes them."""
    messages: Any = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": PROMPTS[0]}]}]
    text = str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
    head, tail = text.split("<|image_pad|>")
    return tokenizer(head)["input_ids"], tokenizer(tail)["input_ids"]


def to_patches(images: np.ndarray) -> Tensor:
    """B x 28 x 28N grey images as Qwen2-VL's image processor cuts them: (B * 4N) x 1176."""
    rows, _, width = images.shape
    half = UNIT // 2
    # B, (merge down, in patch), (column, merge across, in patch) -> B, column, down, across, in patch
    cut = images.reshape(rows, 2, half, width // UNIT, 2, half).transpose(0, 3, 1, 4, 2, 5)
    values = torch.from_numpy(np.ascontiguousarray(cut)).float().reshape(-1, 1, half * half) / 127.5 - 1
    return values.expand(-1, 6, -1).reshape(values.shape[0], -1)


def _seeing(guess: Tensor, batch: Batch) -> Tensor:
    slots = guess[..., : _SLOTS * (_NOTHING + 1)].reshape(*guess.shape[:-1], _SLOTS, _NOTHING + 1)
    before = guess[..., _SLOTS * (_NOTHING + 1) :]
    return functional.cross_entropy(slots.flatten(0, 2), batch.slots.flatten()) + 0.3 * functional.cross_entropy(
        before.flatten(0, 1), batch.before.flatten()
    )


def _hidden(answers: Tensor, noise: torch.Generator) -> Tensor:
    """Which tokens are masked: each block at a rate of its own, a third of the blocks whole, none not at all."""
    rows, length = answers.shape
    blocks = length // BLOCK
    rate = torch.rand((rows, blocks, 1), generator=noise)
    rate = torch.where(torch.rand((rows, blocks, 1), generator=noise) < 1 / 3, 1.0, rate)
    draw = torch.rand((rows, blocks, BLOCK), generator=noise)
    return ((draw < rate) | (draw == draw.amin(-1, keepdim=True))).view(rows, length)


def _positions(head: int, columns: int, tail: int, length: int) -> Tensor:
    """3 x 1 x S: time, row and column; text stands at the same in all three."""
    after = head + columns
    text = torch.arange(after, after + tail + length)
    text = torch.cat([text, text[tail:]])
    still = torch.full((columns,), head)
    places = [still, still, still + torch.arange(columns)]
    return torch.stack([torch.cat([torch.arange(head), place, text]) for place in places]).unsqueeze(1)


def _attention(start: int, length: int) -> Tensor:
    """1 x 1 x S x S, True where a row sees a column; `start` is where the answer begins."""
    whole = start + 2 * length
    sees = torch.ones(whole, whole, dtype=torch.bool).tril()
    block = torch.arange(length) // BLOCK
    sees[start + length :, start : start + length] = block[:, None] > block[None, :]
    sees[start + length :, start + length :] = block[:, None] == block[None, :]
    return sees[None, None]


def drawn_batches(plan: Plan, number: int, tokenizer: Qwen2Tokenizer) -> list[Batch]:
    """The batches of one pool, never the same crop twice; crops of about one width and length stand together."""
    rng = random.Random(f"{plan.seed}/{number}")
    pool: list[Crop] = []
    for _ in range(_POOL * plan.batch):
        text = draw_text(rng, unseen=False, kinds=plan.kinds, longest=plan.longest)
        pool.append(draw_crop(text, rng))
    pool.sort(key=lambda crop: (len(crop.text) // BLOCK, crop.pixels.shape[1] / crop.pixels.shape[0]))
    batches = [new_batch(pool[start : start + plan.batch], tokenizer) for start in range(0, len(pool), plan.batch)]
    rng.shuffle(batches)
    return batches


def new_batch(crops: Sequence[Crop], tokenizer: Qwen2Tokenizer) -> Batch:
    """The crops, filled up to the widest and the longest."""
    columns = max(max(1, round(crop.pixels.shape[1] / UNIT)) for crop in crops)
    length = -(-max(len(crop.text) + 1 for crop in crops) // BLOCK) * BLOCK
    end, pad = (token_id(tokenizer, name) for name in (END, PAD))
    answers = torch.full((len(crops), length), pad)
    slots = torch.full((len(crops), columns, _SLOTS), _NOTHING)
    before = torch.zeros((len(crops), columns), dtype=torch.long)
    for row, crop in enumerate(crops):
        ids = [*tokenizer(crop.text)["input_ids"], end]
        answers[row, : len(ids)] = torch.tensor(ids)
        own = max(1, round(crop.pixels.shape[1] / UNIT))
        places = [min(own - 1, int(middle * own)) for middle in crop.middles]
        for column in range(columns):
            inside = [index for index, place in enumerate(places) if place == column][:_SLOTS]
            before[row, column] = sum(place < column for place in places)
            for slot, index in enumerate(inside):
                slots[row, column, slot] = CHARACTERS.index(crop.text[index])
    images = np.stack([to_grid(crop.pixels, columns) for crop in crops])
    return Batch(to_patches(images), answers, slots, before)
