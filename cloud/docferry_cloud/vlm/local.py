"""The full model in this process: torch and transformers on weights from a local directory, never from a hub."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docferry.errors import ConfigurationError, ModelError
from docferry_cloud.engine import Cancelled
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.batching import Batches, Waiting
from docferry_cloud.vlm.chat import without_frame
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.pictures import as_rgb
from docferry_cloud.vlm.prompts import SYSTEM, Ask

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

DTYPES = ("auto", "float32", "bfloat16", "float16")
QUANTIZE = ("none", "int8")
_ARCHITECTURE = "qwen2_vl"


@dataclass(frozen=True, slots=True)
class Options:
    """How weights are held and questions put together.

    Attributes:
        dtype: A name in `DTYPES`; `auto` is as the weights are stored. CPUs without AMX are slow at bfloat16.
        quantize: A name in `QUANTIZE`; `int8` holds the linear layers as 8-bit integers and computes in `dtype`.
        batch: Questions answered together, at most.
        threads: Of one calculation; 0 leaves torch its own choice.
        patience_s: How long a question waits for others to share its batch; little beside one run of the model.
    """

    dtype: str = "auto"
    quantize: str = "none"
    batch: int = 4
    threads: int = 0
    patience_s: float = 0.005


class LocalModel:
    """A model of Qwen2-VL's architecture. Safe to use from several threads; `load` makes one."""

    def __init__(self, model: Any, processor: Any, provenance: str, options: Options) -> None:
        self._model = model
        self._processor = processor
        self._batches = Batches(self._answer, options.batch, options.patience_s)
        self.provenance = provenance
        self.forwards = 0

    @classmethod
    def load(cls, directory: Path, options: Options | None = None) -> LocalModel:
        """Map the weights and ask one question; nothing is fetched and no code of the directory runs.

        Raises:
            ConfigurationError: torch or transformers is not installed.
            ModelError: The directory holds no such model, or it cannot be loaded, or cannot answer.
        """
        options = options or Options()
        check(directory, quantize=options.quantize)
        import torch
        from transformers import Qwen2VLForConditionalGeneration

        from docferry_cloud.vlm.processor import load_processor

        if options.threads:
            torch.set_num_threads(options.threads)
        try:
            model: Any = Qwen2VLForConditionalGeneration.from_pretrained(
                directory,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=options.dtype if options.dtype == "auto" else getattr(torch, options.dtype),
            )
            processor = load_processor(directory)
        except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
            raise ModelError(
                f"{directory}: the model cannot be loaded: {error}", remedy="copy the whole directory again"
            ) from error
        if torch.cuda.is_available():
            model = model.to("cuda")
        model.eval()
        if options.quantize == "int8":
            quantize_int8(model)
        made = cls(model, processor, f"cloud:vlm-{_name(directory)}@{weights_hash(directory)[:6]}", options)
        # The first answer pays for lazy set-up; and a model that cannot answer at all is found out here.
        (ready,) = made.ask([Question(Ask.FREE, None, text="ready?", tokens=1)], lambda: False)
        if ready.failure:
            raise ModelError(f"{directory}: the model cannot answer", remedy="the log says why")
        return made

    @property
    def network(self) -> torch.nn.Module:
        """The weights as they are held."""
        network: torch.nn.Module = self._model
        return network

    def ask(self, questions: Sequence[Question], cancelled: Cancelled) -> list[Reply]:
        """Answer, together with what others ask at the same time; see `Model.ask`.

        Raises:
            EngineError: `cancelled` said True.
        """
        return self._batches.ask(questions, cancelled)

    def _answer(self, batch: Sequence[Waiting]) -> list[Reply]:
        """One batch of one prompt: tokens until each row has ended, been cut, or is not waited for any more."""
        import torch

        from docferry_cloud.vlm.decoding import Decoding

        began = time.monotonic()
        first = batch[0].question
        inputs = self._inputs(batch)
        start = inputs["input_ids"].shape[1]
        rule = Decoding(self._processor.tokenizer, first.manner, start, [waiting.cancelled for waiting in batch])
        with torch.inference_mode():
            output = self._model.generate(
                **inputs,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                max_new_tokens=first.most_tokens,
                logits_processor=[rule.choose],
                stopping_criteria=[rule.stop],
                use_cache=True,
            )
        seconds = time.monotonic() - began
        prompts = inputs["attention_mask"].sum(dim=1).tolist()
        rows = output[:, start:].tolist()
        self.forwards += output.shape[1] - start
        return [
            self._reply(row, rule.logprobs(number), int(prompts[number]), seconds) for number, row in enumerate(rows)
        ]

    def _inputs(self, batch: Sequence[Waiting]) -> Any:
        texts, images = [], []
        for waiting in batch:
            content: list[dict[str, str]] = [{"type": "text", "text": waiting.question.prompt}]
            if waiting.question.image is not None:
                content.insert(0, {"type": "image"})
                images.append(as_rgb(waiting.question.image))
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
            texts.append(self._processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        inputs = self._processor(text=texts, images=images or None, padding=True, return_tensors="pt")
        return inputs.to(self._model.device, dtype=self._model.dtype)

    def _reply(self, row: list[int], logprobs: list[float], tokens_in: int, seconds: float) -> Reply:
        ends = self._model.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends])
        length = next((at for at, token in enumerate(row) if token in stops), None)
        said = row if length is None else row[:length]
        tokenizer = self._processor.tokenizer
        pad = tokenizer.pad_token_id
        if length is None:
            # A row that was stopped before its end is filled up with padding.
            while said and said[-1] == pad:
                said.pop()
        text = tokenizer.decode(said, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        emitted = len(said) + (length is not None)
        return Reply(
            without_frame(text),
            finished=length is not None,
            logprobs=tuple(logprobs[:emitted]),
            tokens_in=tokens_in,
            tokens_out=emitted,
            seconds=seconds,
        )


def check(directory: Path, *, quantize: str = "none") -> None:
    """Look whether a directory can be loaded here, without loading it.

    Raises:
        ConfigurationError: torch or transformers is not installed.
        ModelError: The directory holds no such model.
    """
    _check_installed(quantize)
    _check_directory(directory)


def quantize_int8(model: torch.nn.Module) -> None:
    """Hold the weights of the linear layers as 8-bit integers with a scale for each row; in place.

    The head stays as it is: it is the embedding table too.
    """
    import torch
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    quantize_(
        model,
        Int8WeightOnlyConfig(),
        filter_fn=lambda module, name: isinstance(module, torch.nn.Linear) and "lm_head" not in name,
    )


def linear_bytes(model: torch.nn.Module) -> int:
    """What the weights of the linear layers take in memory, the head left out as in `quantize_int8`."""
    import torch

    return sum(
        _bytes(module.weight)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and "lm_head" not in name
    )


def _bytes(weight: torch.Tensor) -> int:
    """Of a tensor, or of the parts that a quantised one is made of."""
    names: list[str] | None = getattr(weight, "tensor_data_names", None)
    return sum(_bytes(getattr(weight, name)) for name in names) if names else weight.nbytes


def weights_hash(directory: Path) -> str:
    """SHA-256 over the names and contents of the weights' files, in hex."""
    digest = hashlib.sha256()
    for file in sorted(directory.glob("*.safetensors")):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()


def _name(directory: Path) -> str:
    return "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in directory.resolve().name)[:40]


def _check_installed(quantize: str) -> None:
    needed = ["torch", "transformers", "safetensors", *(["torchao"] if quantize == "int8" else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the full model needs {', '.join(missing)} in this process",
            remedy="pip install 'docferry[vlm]', or name a server in vlm.servers",
            setting="vlm.directory",
        )


def _check_directory(directory: Path) -> None:
    remedy = "give the directory of a MinerU2.5 model: config.json, tokenizer, preprocessor_config.json, *.safetensors"
    try:
        kind = json.loads((directory / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(f"{directory} holds no model: {error}", remedy=remedy) from error
    if kind != _ARCHITECTURE:
        raise ModelError(f"{directory} holds a model of type {kind!r} and not {_ARCHITECTURE!r}", remedy=remedy)
    if not any(directory.glob("*.safetensors")):
        raise ModelError(f"{directory} holds no *.safetensors", remedy=remedy)
    # Without these the library makes an empty tokenizer, without a word.
    if not (directory / "tokenizer.json").is_file() and not (directory / "vocab.json").is_file():
        raise ModelError(f"{directory} holds no tokenizer", remedy=remedy)
