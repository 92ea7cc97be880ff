"""The published checkpoint, MinerU-Diffusion-V1 (2.5 billion parameters), whose code comes with its weights.

That code is a stranger's program and runs with all rights of this process, so it is loaded only where an operator has
said so. The other way is to serve the checkpoint with SGLang (`--dllm-algorithm LowConfidence`) and to name that
server as a model server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, DynamicCache

from docferry.errors import ConfigurationError, ModelError
from docferry_cloud.diffusion.pictures import IMAGE, Encoded, Encoder, with_pictures
from docferry_cloud.diffusion.session import Past, Prompt, Session

MODEL_TYPE = "mineru_diffusion"


class PublishedLanguage:
    """A `Language` over SDAR: plain positions, and a switch that says whether keys and values are kept."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed(self, tokens: Tensor) -> Tensor:
        """See `Language.embed`."""
        embeds: Tensor = self._model.get_input_embeddings()(tokens)
        return embeds

    def run(self, embeds: Tensor, positions: Tensor, sees: Tensor, cache: DynamicCache, last: int) -> Tensor:
        """See `Language.run`."""
        output = self._model(
            inputs_embeds=embeds,
            position_ids=positions[0],
            attention_mask=sees,
            past_key_values=cache,
            use_cache=True,
            # Everything is stored; the session takes the block at work away again.
            store_kv=True,
            logits_to_keep=last,
        )
        logits: Tensor = output.logits
        return logits


class PublishedReader:
    """A `PictureModel` over the published checkpoint."""

    def __init__(self, model: Any, encoder: Encoder, *, block_length: int) -> None:
        self.encoder = encoder
        self.block_length = block_length
        self._model = model

    @classmethod
    def load(
        cls, directory: Path, *, trust_remote_code: bool, block_length: int = 32, dtype: torch.dtype = torch.bfloat16
    ) -> PublishedReader:
        """Read weights and code from `directory`; nothing is ever downloaded.

        Args:
            directory: As published: config.json, the weights, the code and the tokenizer.
            trust_remote_code: Whether the operator lets the directory's own code run in this process.
            block_length: Positions of a block; the checkpoint's is 32.
            dtype: Of the weights in memory.

        Raises:
            ConfigurationError: Nobody has said that the code may run.
            ModelError: Not such a checkpoint.
        """
        config = directory / "config.json"
        try:
            found = json.loads(config.read_text(encoding="utf-8")).get("model_type")
        except (OSError, ValueError, AttributeError) as error:
            raise ModelError(f"{config} cannot be read", remedy="point at the checkpoint's directory") from error
        if found != MODEL_TYPE:
            raise ModelError(
                f"{directory} holds a {found} model, not a {MODEL_TYPE} one",
                remedy="models of Qwen2-VL's architecture are read by the vlm engine",
            )
        if not trust_remote_code:
            raise ConfigurationError(
                f"the checkpoint in {directory} brings code of its own, and nobody has allowed it to run here",
                remedy="read its *.py files and allow it, or serve it with SGLang and name that server",
            )
        model = AutoModel.from_pretrained(directory, trust_remote_code=True, local_files_only=True, dtype=dtype)
        return cls(model.eval(), Encoder(directory), block_length=block_length)

    def start(self, encoded: Encoded) -> Session:
        """Look at the pictures and begin to answer."""
        language = PublishedLanguage(self._model.language_model)
        with torch.inference_mode():
            features = self._model.get_image_features(encoded.patches.to(self._model.dtype), encoded.grids)
            pictured = encoded.ids == self.encoder.token(IMAGE)
            embeds = with_pictures(language.embed(encoded.ids), pictured, features)
            # A picture's tokens count like text; filling has no position of its own.
            positions = (encoded.real.long().cumsum(1) - 1).clamp(min=0)
            prompt = Prompt(embeds, positions.expand(3, -1, -1), encoded.real)
            return Session(language, prompt, past=Past.BLOCKS, block_length=self.block_length)
