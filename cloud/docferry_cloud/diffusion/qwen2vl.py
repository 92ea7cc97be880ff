"""Models of Qwen2-VL's architecture that were trained to fill in masked blocks as well."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from transformers import DynamicCache, Qwen2VLForConditionalGeneration

from docferry_cloud.diffusion.pictures import IMAGE, Encoded, Encoder, with_pictures
from docferry_cloud.diffusion.session import Past, Prompt, Session


class Qwen2VLLanguage:
    """A `Language` over the language model of Qwen2-VL."""

    def __init__(self, model: Qwen2VLForConditionalGeneration) -> None:
        self._model = model

    def embed(self, tokens: Tensor) -> Tensor:
        """See `Language.embed`."""
        embeds: Tensor = self._model.get_input_embeddings()(tokens)
        return embeds

    def run(self, embeds: Tensor, positions: Tensor, sees: Tensor, cache: DynamicCache, last: int) -> Tensor:
        """See `Language.run`."""
        output = self._model.model.language_model(
            inputs_embeds=embeds,
            position_ids=positions,
            attention_mask={"full_attention": sees},
            cache=cache,
            use_cache=True,
        )
        logits: Tensor = self._model.lm_head(output.last_hidden_state[:, -last:])
        return logits


class Qwen2VLReader:
    """A `PictureModel` from a directory in Qwen2-VL's form, with a mask among its tokens."""

    def __init__(
        self, model: Qwen2VLForConditionalGeneration, encoder: Encoder, *, block_length: int, past: Past = Past.CAUSAL
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.block_length = block_length
        self._past = past

    @classmethod
    def load(cls, directory: Path, *, block_length: int, past: Past = Past.CAUSAL) -> Qwen2VLReader:
        """Read the weights; nothing is ever downloaded."""
        model = Qwen2VLForConditionalGeneration.from_pretrained(directory, local_files_only=True)
        return cls(model.eval(), Encoder(directory), block_length=block_length, past=past)

    def start(self, encoded: Encoded) -> Session:
        """Look at the pictures and begin to answer."""
        language = Qwen2VLLanguage(self.model)
        pictured = encoded.ids == self.encoder.token(IMAGE)
        with torch.inference_mode():
            features = self.model.model.visual(encoded.patches, grid_thw=encoded.grids).pooler_output
            embeds = with_pictures(language.embed(encoded.ids), pictured, features)
            positions, _ = self.model.model.get_rope_index(
                encoded.ids, pictured.int(), image_grid_thw=encoded.grids, attention_mask=encoded.real.long()
            )
            prompt = Prompt(embeds, positions, encoded.real)
            return Session(language, prompt, past=self._past, block_length=self.block_length)
