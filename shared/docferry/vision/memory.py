"""How a program that reads pages keeps its memory small: settings of the process, made once, before networks load.

Without them a reader that needs 150 MB at rest peaks above 380 MB: every network frees its largest page's buffers into
a heap that cannot shrink past the small blocks left in between, and the next network grows the heap again.
`benchmarks/reading.py` reports the peak.
"""

from __future__ import annotations

import ctypes
import functools

import onnxruntime

# From glibc's malloc.h; other C libraries have no mallopt, or ignore these.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_LARGE_BLOCK = 4 << 20
"""Bytes from which a block is mapped on its own and returned at once. Smaller ones would cost more in page faults."""


@functools.cache
def bound_memory() -> None:
    """Bound what this process holds on to; for programs that only read pages. Later calls do nothing.

    All networks opened afterwards share one arena (onnxruntime's environment allocator): its size is what the
    largest of them needs for a page, not the sum over them, and its pages are not faulted in anew for every page.
    """
    arena = onnxruntime.OrtArenaCfg(0, 0, -1, -1)
    memory = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(memory, arena)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # Each thread would otherwise keep a heap of its own.
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK)
