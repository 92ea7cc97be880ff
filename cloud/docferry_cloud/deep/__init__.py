"""Deep reading: two detectors find every line, several recognisers read what is in doubt, and the readings vote.

`find` → `groups` → `vote` → `numbers`; `reader.DeepReader` runs them on a page or a crop.
"""
