"""The Muon optimizer (Jordan and others, 2024) in single precision; torch's own works in bfloat16, slow on CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of an iteration that drives singular values towards 1, from the optimizer's description."""


class Muon(torch.optim.Optimizer):
    """Momentum whose every step is made orthogonal, for matrices between layers.

    Args:
        weights: Two-dimensional parameters.
        rate: The learning rate, in AdamW's measure: a step's entries have a root mean square of 0.2 of it.
        momentum: Share of the last step that is kept.
    """

    def __init__(self, weights: Iterable[nn.Parameter], rate: float, momentum: float = 0.95) -> None:
        super().__init__(weights, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every weight that has a gradient."""
        assert closure is None
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                velocity: Tensor = state["momentum"]
                velocity.lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(velocity, group["momentum"])
                scale = 0.2 * max(weight.shape) ** 0.5
                weight.add_(orthogonal(ahead), alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor, iterations: int = 5) -> Tensor:
    """About the nearest matrix whose rows, or columns if there are fewer, are orthonormal."""
    a, b, c = _NEWTON_SCHULZ
    turned = matrix.shape[0] > matrix.shape[1]
    x: Tensor = matrix.T if turned else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(iterations):
        square: Tensor = x @ x.T
        x = torch.addmm(x, torch.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if turned else x
