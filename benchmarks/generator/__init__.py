"""An endless, seeded generator of document photographs with exact truth. Development only.

`generate(kind, seed, split)` makes one sample; `python -m benchmarks.generator` writes a data set of them.
"""

from benchmarks.generator.make import Sample, generate
from benchmarks.generator.truth import Kind, Language, Split, Truth

__all__ = ["Kind", "Language", "Sample", "Split", "Truth", "generate"]
