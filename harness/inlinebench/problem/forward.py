"""Runs a reference model: on a device, under a random state, taken apart into tensors and other values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.wire.arena import TensorMeta, is_dense
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.tree import flatten, merge, plain, unflatten


@dataclass(frozen=True)
class InputForm:
    """How the arguments of `forward` nest, and which leaves are tensors."""

    skeleton: Any
    is_tensor: tuple[bool, ...]

    def arguments(self, tensors: Sequence[torch.Tensor], non_tensors: Sequence[Any]) -> list[Any]:
        """The arguments, put together; the others are copied, because `forward` may change them."""
        leaves = merge(self.is_tensor, tensors, copy.deepcopy(non_tensors))
        return list(unflatten(self.skeleton, leaves))


@dataclass(frozen=True)
class Output:
    """An output taken apart: how it nests, which leaves are tensors, these, and the other leaves."""

    skeleton: Any
    is_tensor: tuple[bool, ...]
    tensors: tuple[torch.Tensor, ...]
    non_tensors: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any) -> Output:
        skeleton, leaves = flatten(value)
        is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
        tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
        return cls(skeleton, is_tensor, tensors,
                   tuple(plain(leaf) for leaf in leaves if not isinstance(leaf, torch.Tensor)))

    def dense(self) -> Output:
        """With expanded tensors and those with gaps written out, as a solution's are for the judge."""
        return replace(self, tensors=tuple(
            tensor if is_dense(tensor) else tensor.contiguous() for tensor in self.tensors
        ))

    @property
    def metas(self) -> tuple[TensorMeta, ...]:
        return tuple(TensorMeta.of(tensor) for tensor in self.tensors)


def run(model: torch.nn.Module, arguments: Sequence[Any], random_seed: int) -> Any:
    """The raw output of one forward under no_grad, with every generator seeded before."""
    seed_all(random_seed)
    with torch.no_grad():
        return model(*arguments)


def random_state(device: torch.device) -> torch.Tensor:
    """The state of all generators that `forward` may draw from, to be compared."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return torch.cat(states)


def to_double(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Floating tensors in float64, complex ones in complex128, others as they are."""
    return tuple(map(_widen, tensors))


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor
