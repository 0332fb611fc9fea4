"""Draws the inputs of a problem with secret seeds, and writes variants of them into the shared buffers."""

from __future__ import annotations

import random
import time
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.devices.registry import of
from inlinebench.problem import problem_file
from inlinebench.problem.fresh_seeds import fresh_seeds
from inlinebench.problem.input_domains import TraceDomains
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant, apply_variant, blur
from inlinebench.wire.arena import TensorMeta, is_dense, is_plain
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.tree import flatten

SLOW_DRAW_S = 0.3
"""If `get_inputs` takes longer than this, its results are reused."""
KEPT_SETS = 4
"""The number of results that are kept for reuse."""



@dataclass(frozen=True)
class Draw:
    """One result of `get_inputs`, split into its structure and its leaves."""

    skeleton: Any
    """The nesting of lists, tuples and dicts, as `inlinebench.wire.tree.flatten` returns it."""
    is_tensor: tuple[bool, ...]
    """For each leaf, whether it is a tensor."""
    tensors: tuple[torch.Tensor, ...]
    """The tensors, detached."""
    non_tensors: tuple[Any, ...]
    """The other leaves."""

    @property
    def metas(self) -> tuple[TensorMeta, ...]:
        """Dtype, shape and strides of each tensor."""
        return tuple(TensorMeta.of(tensor) for tensor in self.tensors)


def draw(module: types.ModuleType, seed: int, device: torch.device) -> Draw:
    """Draws fresh inputs with a seed. Factory functions without a device create tensors on `device`; others are moved.

    Seeds that `get_inputs` sets itself do not make its inputs the same in every call. Raises ProblemError if
    `get_inputs` fails, and torch.OutOfMemoryError if the inputs do not fit.
    """
    seed_all(seed)
    with torch.device(device), torch.no_grad(), fresh_seeds(seed):
        skeleton, leaves = flatten(problem_file.inputs(module))
    is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
    tensors = tuple(_dense(module, leaf, device) for leaf in leaves if isinstance(leaf, torch.Tensor))
    non_tensors = tuple(leaf for leaf in leaves if not isinstance(leaf, torch.Tensor))
    return Draw(skeleton, is_tensor, tensors, non_tensors)


def _dense(module: types.ModuleType, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Returns an input on the device without gaps or overlaps in memory, as the shared buffers hold it."""
    if not is_plain(tensor):
        raise ProblemError(f"{module.__file__}: get_inputs() returns a sparse, nested or quantized tensor; it must "
                           "return ordinary dense tensors")
    tensor = tensor.detach().to(device)
    return tensor if is_dense(tensor) else tensor.contiguous()


def draw_traced(module: types.ModuleType, seed: int, device: torch.device) -> tuple[Draw, tuple[int, ...]]:
    """Draws inputs as `draw` does. Also returns the positions of the tensors that come straight from a draw.

    If `get_inputs` does not run while it is traced, no position is returned.
    """
    try:
        with TraceDomains() as domains:
            drawn = draw(module, seed, device)
        return drawn, tuple(index for index, tensor in enumerate(drawn.tensors) if domains.is_free(tensor))
    except ProblemError:
        return draw(module, seed, device), ()


class InputSource:
    """Provides the inputs of one problem at one shape for call after call.

    Args:
        module: the problem's module.
        device: where inputs are drawn.
        metas: the dtype, shape and strides that every drawn tensor must have.
        admitted: for each changing variant, the positions of the tensors that the reference accepts it for.
        continuous: the positions of the tensors whose values may change a little when a drawn set is used again.
    """

    def __init__(
        self,
        module: types.ModuleType,
        device: torch.device,
        metas: Sequence[TensorMeta],
        admitted: Mapping[Variant, Collection[int]],
        continuous: Collection[int],
    ) -> None:
        self._module, self._device, self._metas = module, device, tuple(metas)
        self._continuous = frozenset(continuous)
        self._admitted = {variant: frozenset(positions) for variant, positions in admitted.items() if positions}
        self._kept: list[Draw] = []
        self._slow = False

    @property
    def kinds(self) -> tuple[Variant, ...]:
        """The variants that `variants` yields."""
        return (Variant.PLAIN, *sorted(self._admitted))

    def variants(self, secret_random: random.Random) -> Iterator[Variant]:
        """Yields the variant for one call after the other, in secret order.

        Each block of at most seven calls has inputs as drawn and each admitted variant once, so that a check has all.
        """
        block = list(self.kinds)
        while True:
            secret_random.shuffle(block)
            yield from block

    def write(self, seed: int, variant: Variant, targets: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Writes one call's inputs to the target tensors. Returns the non-tensor arguments.

        Raises ProblemError if the shapes, dtypes or strides differ from the first draw.
        """
        drawn = self._draw(seed)
        if drawn.metas != self._metas:
            raise ProblemError(f"{self._module.__file__}: get_inputs() must return the same shapes, dtypes and strides "
                               "in every call")
        generator = torch.Generator(self._device).manual_seed(seed)
        positions = self._positions(variant, seed)
        for position, (tensor, target) in enumerate(zip(drawn.tensors, targets, strict=True)):
            target.copy_(tensor)
            if self._slow and position in self._continuous:
                blur(target, generator)
            if position in positions:
                changed = apply_variant(variant, target, generator)
                assert changed.data_ptr() == target.data_ptr()
        return drawn.non_tensors

    def release(self) -> None:
        """Moves the draws that are used again to the host."""
        self._kept = list(map(_to_host, self._kept))

    def describe(self, variant: Variant, seed: int) -> str:
        """Describes how the inputs that `write` writes differ from those drawn, such as "random signs of input 0"."""
        form = problem_file.gradients(self._module)
        first = None if form is None else len(self._metas) - len(form.incoming)
        return variant.of(sorted(self._positions(variant, seed)), first)

    def _positions(self, variant: Variant, seed: int) -> frozenset[int]:
        """Returns the positions of the tensors that a variant changes.

        Negating all factors of a product can leave it unchanged, so ONE_SIGN changes all tensors or a single one.
        The probe tried both.
        """
        admitted = self._admitted.get(variant, frozenset())
        if variant is not Variant.ONE_SIGN or len(admitted) < 2:
            return admitted
        choice = SecretRandom(seed, "input of one sign").choice([None, *sorted(admitted)])
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
        size = sum(tensor.numel() * tensor.element_size() for tensor in drawn.tensors)
        return size * KEPT_SETS < of(self._device).allocatable_bytes() // 4


def _to_host(drawn: Draw) -> Draw:
    return replace(drawn, tensors=tuple(tensor.cpu() for tensor in drawn.tensors))
