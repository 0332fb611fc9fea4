"""Makes operators round differently, to find out how much a result depends on how they happen to round.

Two implementations that are equally exact round differently: another order of a sum, another `exp`. Where a difference
cancels, such as `1 - y` for `y` near 1, the last bit of `y` decides the result, and an implementation that happens to
get it right has no error. This is Monte Carlo arithmetic (D. S. Parker, "Monte Carlo Arithmetic: exploiting randomness
in floating-point arithmetic", 1997), with a whole operator as a step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inlinebench.compare.tolerance import ULPS

FLOATS = (torch.float32, torch.float64)
"""The dtypes that change. PyTorch computes in float32 for smaller ones, and rounds once: nothing could round better."""


class RoundingNoise(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Multiplies what each operator returns by `1 + 2 * epsilon * u`, with `u` uniform in [-1, 1], while it is active.

    `epsilon` is that of the result's dtype: two units in the last place, as an output may have. Results that share
    memory with arguments stay as they are, and so do random numbers and dtypes other than `FLOATS`. The generators of
    PyTorch are not used.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed, self._generators = seed, dict[torch.device, torch.Generator]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if _computes(func):
            for each in tree_leaves(result):
                if isinstance(each, torch.Tensor) and each.dtype in FLOATS and each.numel():
                    self._change(each)
        return result

    def _change(self, tensor: torch.Tensor) -> None:
        device = tensor.device
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        most = ULPS * torch.finfo(tensor.dtype).eps
        noise = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
        tensor.mul_(noise.uniform_(-most, most, generator=self._generators[device]).add_(1))


def _computes(func: Any) -> bool:
    """Whether an operator returns new tensors with values that it has computed."""
    shared = any(returned.alias_info is not None for returned in func._schema.returns)
    return not shared and torch.Tag.nondeterministic_seeded not in func.tags
