"""Runs one call: views on the judge's buffers in, `forward` between two time stamps, outputs copied to the judge."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.timing.call import Clock, Sample, timed_call
from harness.wire.arena import TensorSpec, view
from harness.wire.arithmetic import seed_all
from harness.wire.tree import Leaf, describe, flatten, merge, same_structure, unflatten

POISON_BYTE = 0xFF
"""Every floating type reads a run of these as NaN."""


class Mismatch(Exception):
    """The output is not of the reference's form; the text says how."""


@dataclass(frozen=True)
class Form:
    """What the judge expects: how arguments and outputs nest, where their tensors lie, and which states to hand in.

    `states` maps the solution's own buffer names to places.
    """

    input_skeleton: Any
    input_is_tensor: tuple[bool, ...]
    inputs: tuple[TensorSpec, ...]
    output_skeleton: Any
    output_is_tensor: tuple[bool, ...]
    outputs: tuple[TensorSpec, ...]
    states: dict[str, TensorSpec]
    may_alias: bool


class Caller:
    """One solution with its clock and the judge's buffers. `notes` collects what was accepted but converted.

    `guarded` gives the solution copies of the inputs, in memory whose ends the CPU's allocator watches.
    """

    def __init__(
        self, model: torch.nn.Module, clock: Clock, arena: torch.Tensor, form: Form, guarded: bool = False
    ) -> None:
        self._model, self._clock, self._arena, self._form, self._guarded = model, clock, arena, form, guarded
        self._given: list[torch.Tensor] = []
        self.notes: set[str] = set()

    def call(self, others: Sequence[Any], random_seed: int, hold_ms: float) -> tuple[Sample, list[Any]]:
        """One call; gives the sample and the outputs that are no tensors.

        Raises Mismatch for an output of another form; whatever `forward` raises leaves as it is.
        """
        form = self._form
        tensors = [view(self._arena, spec) for spec in form.inputs]
        self._given = [tensor.clone() for tensor in tensors] if self._guarded else tensors
        arguments = unflatten(form.input_skeleton, merge(form.input_is_tensor, self._given, copy.deepcopy(others)))
        self._poison_freed_memory()
        seed_all(random_seed)
        with torch.no_grad():
            (_, plain), sample = timed_call(
                self._clock, lambda: self._conform(self._model(*arguments)), self._hand_in, hold_ms
            )
        return sample, plain

    def _conform(self, value: Any) -> tuple[list[torch.Tensor], list[Any]]:
        """Outputs in the reference's device and layout, converted where need be: this is inside the clock."""
        skeleton, leaves = flatten(value)
        if not same_structure(skeleton, self._form.output_skeleton):
            expected = self._form.output_skeleton
            kind = type(value).__name__ if isinstance(skeleton, Leaf) else describe(skeleton)
            raise Mismatch(f"the output is {kind}; the reference gives {describe(expected)}")
        tensors: list[torch.Tensor] = []
        plain: list[Any] = []
        for leaf, is_tensor in zip(leaves, self._form.output_is_tensor, strict=True):
            if is_tensor:
                tensors.append(self._conform_tensor(leaf, self._form.outputs[len(tensors)]))
            elif isinstance(leaf, bool | int | float | str | None):
                plain.append(leaf)
            else:
                raise Mismatch(f"an output is {type(leaf).__name__}; the reference gives a plain Python value")
        return tensors, plain

    def _conform_tensor(self, out: object, spec: TensorSpec) -> torch.Tensor:
        if type(out) is not torch.Tensor:
            raise Mismatch(f"an output is {type(out).__name__}; the reference gives exactly torch.Tensor")
        if tuple(out.shape) != spec.shape:
            raise Mismatch(f"an output has shape {list(out.shape)}; the reference's has {list(spec.shape)}")
        if out.dtype is not spec.torch_dtype:
            raise Mismatch(f"an output is {str(out.dtype).removeprefix('torch.')}; the reference's is {spec.dtype}")
        if out.device != self._arena.device:
            self.notes.add(f"output converted from {out.device.type}")
            out = out.to(self._arena.device)
        if _used_strides(out.shape, out.stride()) != _used_strides(spec.shape, spec.strides):
            self.notes.add("output converted from another layout")
            out = torch.empty_strided(spec.shape, spec.strides, dtype=out.dtype, device=out.device).copy_(out)
        if not self._form.may_alias and any(_overlap(out, given) for given in self._given):
            raise Mismatch("an output lies in the memory of an input; the reference's doesn't")
        return out

    def _hand_in(self, output: tuple[list[torch.Tensor], list[Any]]) -> None:
        """Copies outputs and states to the judge's buffers, on the stream of the call and outside its time."""
        for tensor, spec in zip(output[0], self._form.outputs, strict=True):
            view(self._arena, spec).copy_(tensor)
        if self._guarded:  # what was done to the copies is done to the inputs, where the judge looks
            for tensor, spec in zip(self._given, self._form.inputs, strict=True):
                view(self._arena, spec).copy_(tensor)
        buffers = dict(self._model.named_buffers())
        for name, spec in self._form.states.items():
            state = buffers.get(name)
            if state is None or tuple(state.shape) != spec.shape:
                raise Mismatch(f"the buffer {name} is gone or has another shape")
            view(self._arena, spec).copy_(state)

    def _poison_freed_memory(self) -> None:
        """Fills the blocks that outputs of this size will be allocated from, so that nothing useful is left there."""
        for spec in self._form.outputs:
            torch.empty(spec.bytes, dtype=torch.uint8, device=self._arena.device).fill_(POISON_BYTE)



def _overlap(out: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether an output begins inside the memory of an input (a dense tensor)."""
    begin = given.data_ptr()
    return out.numel() > 0 and begin <= out.data_ptr() < begin + given.numel() * given.element_size()


def _used_strides(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The strides that matter: of dimensions with more than one element, where there is any."""
    if 0 in shape:
        return []
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]
