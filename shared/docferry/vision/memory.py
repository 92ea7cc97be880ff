"""How a program that reads pages keeps its memory small: settings of the process, made once, before networks load.

Without them a reader that needs 150 MB at rest peaks above 380 MB: every network frees its largest page's buffers into
a heap that cannot shrink past the small blocks left in between, and the next network grows the heap again.
`benchmarks/reading.py` reports the peak.
"""

from __future__ import annotations

import functools

import onnxruntime

from docferry.malloc import map_large_blocks, one_arena


@functools.cache
def bound_memory() -> None:
    """Bound what this process holds on to; for programs that only read pages. Later calls do nothing.

    All networks opened afterwards share one arena (onnxruntime's environment allocator): its size is what the
    largest of them needs for a page, not the sum over them, and its pages are not faulted in anew for every page.
    """
    memory = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(0, 0, -1, -1))
    one_arena()
    map_large_blocks()
