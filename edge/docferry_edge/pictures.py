"""How pictures leave the device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pictures:
    """How pictures are encoded where the plan leaves it open: the overview's long side in pixels, and WebP qualities
    1..100. All are grey.
    """

    overview_side: int = 768
    overview_quality: int = 40
    crop_quality: int = 80
    page_quality: int = 60
