"""Requests to glibc's malloc that keep processes small which take up and let go of whole pages again and again.

Where the C library is another one they do nothing.
"""

from __future__ import annotations

import ctypes

# From glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_LARGE_BLOCK = 4 << 20
"""Bytes from which a block is mapped on its own and returned at once. Smaller ones would cost more in page faults."""


def one_arena() -> None:
    """One malloc arena for all threads; call it early.

    An arena a thread keeps what that thread once needed: one for all saves 20 to 80 MB and costs no time.
    """
    _request(_M_ARENA_MAX, 1)


def map_large_blocks() -> None:
    """Blocks of 4 MB and more leave no holes in the heap: they are mapped on their own, and returned when freed."""
    _request(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
    _request(_M_TRIM_THRESHOLD, _LARGE_BLOCK)


def give_back() -> None:
    """Let the kernel have what malloc keeps of pages that are done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _request(parameter: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(parameter, value)
