"""Two requests to glibc's malloc that keep processes small which take up and let go of whole pages again and again.

Where the C library is another one they do nothing.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def one_arena() -> None:
    """One malloc arena for all threads; call it early.

    An arena a thread keeps what that thread once needed: one for all saves 20 to 80 MB and costs no time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Let the kernel have what malloc keeps of pages that are done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
