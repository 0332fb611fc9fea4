"""Runs a reference model, and splits its arguments and outputs into tensors and other values."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.devices.registry import of
from inlinebench.problem import own_code
from inlinebench.wire.arena import TensorMeta, is_dense, is_plain
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.shortage import is_out_of_memory
from inlinebench.wire.tree import flatten, merge, plain, unflatten

Tensors = dict[str, torch.Tensor]
"""Tensors by name, such as the buffers of a model."""


@dataclass(frozen=True)
class InputForm:
    """The structure of the arguments of `forward`."""

    skeleton: Any
    """The nesting of lists, tuples and dicts, as `inlinebench.wire.tree.flatten` returns it."""
    is_tensor: tuple[bool, ...]
    """For each leaf, whether it is a tensor."""

    def arguments(self, tensors: Sequence[torch.Tensor], non_tensors: Sequence[Any]) -> list[Any]:
        """Returns the arguments with these leaves. Non-tensors are copied, because `forward` may change them."""
        leaves = merge(self.is_tensor, tensors, copy.deepcopy(non_tensors))
        return list(unflatten(self.skeleton, leaves))


@dataclass(frozen=True)
class Output:
    """The output of `forward`, split into its structure and its leaves."""

    skeleton: Any
    """The nesting of lists, tuples and dicts, as `inlinebench.wire.tree.flatten` returns it."""
    is_tensor: tuple[bool, ...]
    """For each leaf, whether it is a tensor."""
    tensors: tuple[torch.Tensor, ...]
    """The tensors, detached."""
    non_tensors: tuple[Any, ...]
    """The other leaves. NumPy scalars are converted to Python scalars."""

    @classmethod
    def of(cls, value: Any) -> Output:
        """Splits the value that `forward` returned."""
        skeleton, leaves = flatten(value)
        is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
        tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
        return cls(skeleton, is_tensor, tensors,
                   tuple(plain(leaf) for leaf in leaves if not isinstance(leaf, torch.Tensor)))

    def dense(self) -> Output:
        """Returns the output with expanded tensors and tensors with gaps made contiguous.

        The outputs of a solution are converted in the same way when they are copied to the judge.
        """
        return replace(self, tensors=tuple(
            tensor if is_dense(tensor) else tensor.contiguous() for tensor in self.tensors
        ))

    @property
    def metas(self) -> tuple[TensorMeta, ...]:
        """Dtype, shape and strides of each tensor."""
        return tuple(TensorMeta.of(tensor) for tensor in self.tensors)

    def why_unusable(self) -> str:
        """Returns what about this output cannot be compared, and what to do; "" if everything can."""
        strange = [type(value).__name__ for value in self.non_tensors
                   if not isinstance(value, bool | int | float | str | None)]
        if not strange and all(map(is_plain, self.tensors)):
            return ""
        return (f"returns {strange[0] if strange else 'a sparse, nested or quantized tensor'}; outputs must be dense "
                "tensors, numbers and text, in tuples, lists and dicts")

    def why_meaningless(self) -> str:
        """Returns why nothing can be compared with this output, and what to do; "" if something can."""
        if not self.tensors and all(value is None for value in self.non_tensors):
            return "returns no value; it must return its outputs, change an input in place, or update a buffer"
        values = [_computable(tensor) for tensor in self.tensors if tensor.numel()]
        if not values or self.non_tensors or any(bool(torch.isfinite(tensor).any()) for tensor in values):
            return ""
        what = "NaN" if all(bool(torch.isnan(tensor).all()) for tensor in values) else "infinities and NaN"
        return f"returns only {what}; change the inputs or the sizes so that it returns finite values"

    def has_nan(self) -> bool:
        """Whether an element of a tensor is NaN."""
        return any(bool(torch.isnan(_computable(tensor)).any()) for tensor in self.tensors)


def run(model: torch.nn.Module, arguments: Sequence[Any], random_seed: int, step: str = own_code.FORWARD) -> Any:
    """Seeds all random generators, runs `forward` under `no_grad`, and returns its output.

    `step` is the name under which it is reported as a step of the problem's own code.
    """
    seed_all(random_seed)
    with torch.no_grad(), own_code.step(step):
        return model(*arguments)


def random_state(device: torch.device) -> list[object]:
    """Returns the states of all generators that `seed_all` seeds, to find out whether `forward` draws."""
    states: list[object] = [torch.get_rng_state().tolist(), random.getstate()]
    states += [torch.cuda.get_rng_state(each).tolist() for each in of(device).generators()]
    if (numpy := sys.modules.get("numpy")) is not None:
        _, keys, *rest = numpy.random.get_state()
        states += [keys.tolist(), *rest]
    return states


def is_sticky(error: Exception) -> bool:
    """Whether an exception is a CUDA error that makes the process's CUDA context unusable."""
    return "CUDA error" in str(error) and not is_out_of_memory(error)


def to_double(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Converts floating-point tensors to float64 and complex tensors to complex128. Returns other tensors unchanged."""
    return tuple(map(_widen, tensors))


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def _computable(tensor: torch.Tensor) -> torch.Tensor:
    """Converts a tensor to a dtype that PyTorch can compute with, if its own is too small for that."""
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64)
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor
