"""A small model of Qwen2-VL's architecture that really reads: trained here on drawn crops, built when asked for.

`build.reader_model` gives its directory, which `Qwen2VLForConditionalGeneration` loads like any other; one set of
weights serves greedy autoregression and block-wise diffusion. Weights are cached, never committed.
"""
