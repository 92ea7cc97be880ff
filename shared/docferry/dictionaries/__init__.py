"""The zstd dictionaries that structures are packed with, a pair by id: `<id>.numbers.zdict` and `<id>.texts.zdict`.

Old ones stay, so that what was packed with them can still be read. `benchmarks.train_dictionary` makes them, from
generated documents only.
"""
