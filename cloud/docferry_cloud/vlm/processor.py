"""A Qwen2-VL processor from a local directory, without torchvision and always padded on the left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import ProcessorMixin

_PADS = ("<|image_pad|>", "<|video_pad|>")


def load_processor(directory: Path) -> ProcessorMixin:
    """The directory's tokenizer, picture processor and chat template; nothing is looked up elsewhere.

    The library's own class asks for a video processor, and that one for torchvision. Padding on the right, which a
    directory may state, makes every row but the longest of a batch wrong without a word.
    """
    from transformers import ProcessorMixin, Qwen2Tokenizer, Qwen2VLProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    class PictureProcessor(Qwen2VLProcessor):
        """The same without videos."""

        def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None) -> None:
            self.image_token, self.video_token = _PADS
            self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
            self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
            plain: Any = ProcessorMixin.__init__
            plain(self, image_processor, tokenizer, chat_template=chat_template)

    # By its class, not by what the directory says about itself: that might name code of its own.
    tokenizer = Qwen2Tokenizer.from_pretrained(directory, local_files_only=True, padding_side="left")
    tokenizer.padding_side = "left"
    pictures = Qwen2VLImageProcessorPil.from_pretrained(directory, local_files_only=True)
    template = tokenizer.chat_template or _older_template(directory)
    processor: ProcessorMixin = PictureProcessor(pictures, tokenizer, chat_template=template)
    return processor


def _older_template(directory: Path) -> str | None:
    """The chat template of directories that have it as `chat_template.json`."""
    import json

    file = directory / "chat_template.json"
    if not file.is_file():
        return None
    template: str = json.loads(file.read_text(encoding="utf-8"))["chat_template"]
    return template
