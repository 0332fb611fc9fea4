"""Draws the inputs of a problem, secretly seeded, and writes variants of them into the shared buffers."""

from __future__ import annotations

import random
import time
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.problem import problem_file
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.variants import Variant, apply_variant, blur
from inlinebench.wire.arena import TensorMeta
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.tree import flatten

SLOW_DRAW_S = 0.3
"""Drawing that takes longer than this is not repeated for each call."""
KEPT_SETS = 4


@dataclass(frozen=True)
class Draw:
    """One set of inputs: how they nest, which leaves are tensors, these on the device, and the other leaves."""

    skeleton: Any
    is_tensor: tuple[bool, ...]
    tensors: tuple[torch.Tensor, ...]
    non_tensors: tuple[Any, ...]

    @property
    def metas(self) -> tuple[TensorMeta, ...]:
        return tuple(TensorMeta.of(tensor) for tensor in self.tensors)


def draw(module: types.ModuleType, seed: int, device: torch.device) -> Draw:
    """Fresh inputs for a seed, drawn on the device where the file lets it, else moved there.

    Raises ProblemError if the file can't, torch.OutOfMemoryError if they don't fit.
    """
    seed_all(seed)
    with torch.device(device), torch.no_grad():
        skeleton, leaves = flatten(problem_file.inputs(module))
    is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
    tensors = tuple(leaf.detach().to(device) for leaf in leaves if isinstance(leaf, torch.Tensor))
    non_tensors = tuple(leaf for leaf in leaves if not isinstance(leaf, torch.Tensor))
    return Draw(skeleton, is_tensor, tensors, non_tensors)


class InputSource:
    """The inputs of one problem at one shape, call after call.

    `admitted` tells for each changing variant which tensors (by position) take it.
    """

    def __init__(
        self,
        module: types.ModuleType,
        device: torch.device,
        metas: Sequence[TensorMeta],
        admitted: Mapping[Variant, Collection[int]],
    ) -> None:
        self._module, self._device, self._metas = module, device, tuple(metas)
        self._admitted = {variant: frozenset(positions) for variant, positions in admitted.items() if positions}
        self._kept: list[Draw] = []
        self._slow = False

    def choose_variant(self, secret_random: random.Random) -> Variant:
        """A variant for one call: a changing one half of the time or more, where any is admitted."""
        if not self._admitted or secret_random.random() < 0.4:
            return Variant.PLAIN
        return secret_random.choice(sorted(self._admitted))

    def write(self, seed: int, variant: Variant, targets: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Fills the shared buffers with one call's inputs; gives the leaves that are no tensors.

        Raises ProblemError if the file draws other shapes or dtypes than before.
        """
        drawn = self._draw(seed)
        if drawn.metas != self._metas:
            raise ProblemError(f"{self._module.__file__}: get_inputs() gives other shapes or dtypes from call to call")
        generator = torch.Generator(self._device).manual_seed(seed)
        positions = self._positions(variant, seed)
        for position, (tensor, target) in enumerate(zip(drawn.tensors, targets, strict=True)):
            target.copy_(tensor)
            if self._slow and any(position in positions for positions in self._admitted.values()):
                blur(target, generator)
            if position in positions:
                changed = apply_variant(variant, target, generator)
                assert changed.data_ptr() == target.data_ptr()
        return drawn.non_tensors

    def _positions(self, variant: Variant, seed: int) -> frozenset[int]:
        """Which tensors take a variant. Negating all factors of a product at once may leave it as it is, so that is
        done to all or to one alone; both were rehearsed."""
        admitted = self._admitted.get(variant, frozenset())
        if variant is not Variant.NEGATED or len(admitted) < 2:
            return admitted
        choice = random.Random(seed).choice([None, *sorted(admitted)])
        return admitted if choice is None else frozenset({choice})

    def _draw(self, seed: int) -> Draw:
        if self._slow:
            return self._kept[seed % len(self._kept)]
        begin = time.perf_counter()
        drawn = draw(self._module, seed, self._device)
        if time.perf_counter() - begin > SLOW_DRAW_S and any(tensor.numel() for tensor in drawn.tensors):
            self._kept.append(drawn if self._fits(drawn) else _to_host(drawn))
            self._slow = len(self._kept) == KEPT_SETS
        return drawn

    def _fits(self, drawn: Draw) -> bool:
        if self._device.type != "cuda":
            return True
        size = sum(tensor.numel() * tensor.element_size() for tensor in drawn.tensors)
        return size * KEPT_SETS < torch.cuda.mem_get_info(self._device)[0] // 4


def _to_host(drawn: Draw) -> Draw:
    return replace(drawn, tensors=tuple(tensor.cpu() for tensor in drawn.tensors))
