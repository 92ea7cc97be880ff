"""The embedded engine with the full model behind it."""

from __future__ import annotations

from dataclasses import dataclass

from docferry.document import Page
from docferry_cloud.engine import AskingEngine, Cancelled, Deepener, Effort, Engine, PageInput, Task, Want


@dataclass(frozen=True, slots=True, eq=False)
class TwoSteps:
    """Answers as `fast` does; whoever wants more has `deep`."""

    fast: Engine
    deep: Deepener

    @property
    def name(self) -> str:
        """Of the first step: the second one's versions bear its own."""
        return self.fast.name

    @property
    def tasks(self) -> frozenset[Task]:
        """Of both."""
        return self.fast.tasks | {Task.TABLE, Task.FORMULA}

    def read(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:
        """As `fast` does.

        Raises:
            EngineError: The engine failed on this page, or `cancelled` said True.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
        """
        return self.fast.read(page, effort, cancelled)

    def wants(self, page: PageInput, read: Page) -> tuple[Want, ...]:
        """As `fast` does."""
        return self.fast.wants(page, read) if isinstance(self.fast, AskingEngine) else ()
