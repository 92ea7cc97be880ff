"""Block-wise diffusion decoding: several tokens per forward, as many as the model is sure of.

The scheme is MinerU-Diffusion's (an answer grows block by block; a block begins as masks and its tokens are fixed in
the order of the model's confidence); the code is our own. Nothing outside this package needs it to import torch.
"""
