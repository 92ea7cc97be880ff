"""Builds the full model that the settings name, and the engine with it behind the embedded one."""

from __future__ import annotations

from docferry_cloud.engine import Engine
from docferry_cloud.vlm.model import Model
from docferry_cloud.vlm.reader import FullReader
from docferry_cloud.vlm.settings import VlmSettings
from docferry_cloud.vlm.two_steps import TwoSteps


def with_full_model(fast: Engine, settings: VlmSettings) -> Engine:
    """The engine with the full model behind it; as it is where the settings name none.

    A server need not be there yet: until it is, the fast answers stand, marked.

    Raises:
        ConfigurationError: The extra `vlm` is missing.
        ModelError: The directory holds no model that can be loaded.
    """
    if not settings.there:
        return fast
    return TwoSteps(fast, FullReader(full_model(settings), settings.always_layout))


def full_model(settings: VlmSettings) -> Model:
    """The model, in this process or on its servers.

    Raises:
        ConfigurationError: The extra `vlm` is missing.
        ModelError: The directory holds no model that can be loaded.
    """
    if settings.directory is not None:
        from docferry_cloud.vlm.local import LocalModel, Options

        options = Options(settings.dtype, settings.quantize, settings.batch, settings.threads)
        return LocalModel.load(settings.directory, options)
    from docferry_cloud.vlm.servers import Servers, ServerTimes

    return Servers(
        settings.servers,
        model=settings.model,
        key=settings.key,
        form=settings.picture_format,
        concurrency=settings.concurrency,
        times=ServerTimes(silence=settings.silence_s),
    )
