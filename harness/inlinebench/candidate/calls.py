"""Runs calls: views on the judge's buffers in, `forward` between two time stamps, outputs copied to the judge."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inlinebench.timing.before_call import BeforeCall
from inlinebench.timing.call import Clock, Sample, held_batch, timed_call
from inlinebench.wire.arena import BufferSet, TensorSpec, view
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.tree import Leaf, describe, flatten, merge, plain, same_structure, unflatten

_address_of = torch.Tensor.data_ptr
_now_ns = time.perf_counter_ns
_NoTorchFunction = torch._C.DisableTorchFunction
"""Bound before a solution could put its own in their place."""


class Mismatch(Exception):
    """The output is not of the reference's form; the text says how."""


@dataclass(frozen=True)
class Form:
    """What the judge expects: how arguments and outputs nest, where their tensors lie, and which states to hand in.

    A call by itself uses the set of buffers that it is told, a batch one for each of its calls. `states` maps the
    solution's own buffer names to places.
    """

    input_skeleton: Any
    input_is_tensor: tuple[bool, ...]
    output_skeleton: Any
    output_is_tensor: tuple[bool, ...]
    sets: tuple[BufferSet, ...]
    states: dict[str, TensorSpec]
    may_alias: bool


@dataclass(frozen=True)
class Handed:
    """A call's output in the judge's form: places with the tensors to copy there, and leaves that are no tensors."""

    tensors: list[tuple[TensorSpec, torch.Tensor]]
    plain: list[Any]


class Caller:
    """One solution with its clock and the judge's buffers. `notes` collects what was accepted but converted.

    With `copied_to` the solution gets copies of the inputs on that device: on the CPU in memory whose ends the
    allocator watches, on a GPU where the arena lies in the host's memory. Every other call's lie where those of the
    call before did: what was kept by address is stale then.
    """

    def __init__(
        self, model: torch.nn.Module, clock: Clock, arena: torch.Tensor, form: Form,
        copied_to: torch.device | None = None,
    ) -> None:
        self._model, self._clock, self._arena, self._form, self._copied_to = model, clock, arena, form, copied_to
        self._device = copied_to or arena.device
        self._given: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []
        self._before_call = BeforeCall(clock, self._device, [spec.bytes for spec in form.sets[0].outputs])
        with _NoTorchFunction():
            self._base = _address_of(arena)
        self.notes: set[str] = set()

    def call(
        self, non_tensors: Sequence[Any], random_seed: int, blocking_ms: float, number: int = 0
    ) -> tuple[Sample, list[Any]]:
        """One call on the set of buffers of that number; gives the sample and the outputs that are no tensors.

        Raises Mismatch for an output of another form; whatever `forward` raises leaves as it is.
        """
        buffers = self._form.sets[number]
        arguments = self._arguments(buffers, non_tensors)
        given = () if self._copied_to else ((self._base + spec.offset, spec.bytes) for spec in buffers.inputs)
        self._before_call.prepare(given)
        seed_all(random_seed)
        with torch.no_grad():
            work = partial(self._forward, buffers, arguments)
            handed, sample = timed_call(self._clock, work, self._hand_in, blocking_ms)
        return sample, handed.plain

    def batch(
        self, calls: Sequence[tuple[Sequence[Any], int]], blocking_ms: float, on_queued: Callable[[], None]
    ) -> tuple[Sample, list[list[Any]]]:
        """Calls, given as others and seeds, each on a set of its own, queued behind one hold that the judge releases.

        Raises as `call` does.
        """
        plain: list[list[Any]] = []

        def work(buffers: BufferSet, non_tensors: Sequence[Any], random_seed: int) -> Handed:
            arguments = self._arguments(buffers, non_tensors)
            seed_all(random_seed)
            return self._forward(buffers, arguments)

        def finish(_: int, handed: Handed) -> None:
            self._hand_in(handed)
            plain.append(handed.plain)

        works = [partial(work, buffers, *call) for buffers, call in zip(self._form.sets, calls, strict=False)]
        with torch.no_grad():
            return held_batch(self._clock, works, finish, blocking_ms, on_queued), plain

    def loop(self, calls: Sequence[tuple[Sequence[Any], int | None]]) -> tuple[float, list[Handed], list[bool]]:
        """Calls back to back, as a loop in Python makes them, each on a set of its own; the device is waited for once.

        Gives the time of a call in ms by the host's clock, the outputs in the judge's form, and for each call whether
        a later one wrote over its output. Only `forward` lies in the time; calls with a seed set it first.

        Raises as `call` does.
        """
        sets = self._form.sets
        given = [(self._arguments(buffers, non_tensors), self._given, seed)
                 for buffers, (non_tensors, seed) in zip(sets, calls, strict=False)]
        clock, values = self._clock, list[Any]()
        clock.start()
        clock.stop()
        clock.drain()
        with torch.no_grad():
            begin = _now_ns()
            for arguments, _, seed in given:
                if seed is not None:
                    seed_all(seed)
                values.append(self._model(*arguments))
            clock.drain()
            wall_ms = (_now_ns() - begin) / 1e6 / len(given)
            handed = []
            for buffers, (_, tensors, _), value in zip(sets, given, values, strict=False):
                self._given = tensors
                handed.append(self._in_form(value, buffers))
        # Behind the outputs come the states, which are the same tensors each time; the last call's are compared.
        outputs = len(sets[0].outputs)
        written_over = _written_over([[tensor for _, tensor in each.tensors[:outputs]] for each in handed])
        for each in handed:
            self._hand_in(each)
        clock.drain()
        return wall_ms, handed, written_over

    def _arguments(self, buffers: BufferSet, non_tensors: Sequence[Any]) -> Any:
        tensors = [view(self._arena, spec) for spec in buffers.inputs]
        self._given = tensors if self._copied_to is None else self._copied(tensors, self._copied_to)
        form = self._form
        return unflatten(form.input_skeleton, merge(form.input_is_tensor, self._given, copy.deepcopy(non_tensors)))

    def _copied(self, tensors: Sequence[torch.Tensor], to: torch.device) -> list[torch.Tensor]:
        """Copies of these, in new memory and in the same again by turns."""
        copies, self._copies = self._copies, []
        if copies:
            for copied, tensor in zip(copies, tensors, strict=True):
                copied.copy_(tensor)
            return copies
        self._copies = [tensor.to(to, copy=True) for tensor in tensors]
        return [copied.detach() for copied in self._copies]  # what is done to the objects themselves shall not matter

    def _forward(self, buffers: BufferSet, arguments: Any) -> Handed:
        """`forward`, and its outputs and states in the judge's form, converted where need be: all inside the clock."""
        return self._in_form(self._model(*arguments), buffers)

    def _in_form(self, value: Any, buffers: BufferSet) -> Handed:
        skeleton, leaves = flatten(value)
        if not same_structure(skeleton, self._form.output_skeleton):
            expected = self._form.output_skeleton
            kind = type(value).__name__ if isinstance(skeleton, Leaf) else describe(skeleton)
            raise Mismatch(f"the output is {kind}; the reference gives {describe(expected)}")
        handed = Handed([], [])
        for leaf, is_tensor in zip(leaves, self._form.output_is_tensor, strict=True):
            if is_tensor:
                spec = buffers.outputs[len(handed.tensors)]
                handed.tensors.append((spec, self._conform(leaf, spec)))
            elif isinstance(plain(leaf), bool | int | float | str | None):
                handed.plain.append(plain(leaf))
            else:
                raise Mismatch(f"an output is {type(leaf).__name__}; the reference gives a plain Python value")
        own = dict(self._model.named_buffers())
        for name, spec in self._form.states.items():
            if name not in own or tuple(own[name].shape) != spec.shape:
                raise Mismatch(f"the buffer {name} is gone or has another shape")
            handed.tensors.append((spec, self._lay_out(own[name].detach(), spec)))
        return handed

    def _conform(self, out: object, spec: TensorSpec) -> torch.Tensor:
        if type(out) is not torch.Tensor:
            raise Mismatch(f"an output is {type(out).__name__}; the reference gives exactly torch.Tensor")
        if tuple(out.shape) != spec.shape:
            raise Mismatch(f"an output has shape {list(out.shape)}; the reference's has {list(spec.shape)}")
        if out.dtype is not spec.torch_dtype:
            raise Mismatch(f"an output is {str(out.dtype).removeprefix('torch.')}; the reference's is {spec.dtype}")
        out = self._lay_out(out, spec)
        if not self._form.may_alias and any(_overlap(out, given) for given in self._given):
            raise Mismatch("an output lies in the memory of an input; the reference's doesn't")
        return out

    def _lay_out(self, tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
        """A tensor whose bytes are what the judge's buffer is to hold."""
        if not _is_plain(tensor):
            raise Mismatch("an output is a tensor whose values are still to be computed")
        if tensor.device != self._device:
            self.notes.add(f"output converted from {tensor.device.type}")
            tensor = tensor.to(self._device)
        same_strides = _used_strides(tensor.shape, tensor.stride()) == _used_strides(spec.shape, spec.strides)
        if not same_strides or tensor.is_neg() or tensor.is_conj():
            self.notes.add("output converted from another layout")
            target = torch.empty_strided(spec.shape, spec.strides, dtype=tensor.dtype, device=tensor.device)
            tensor = target.copy_(tensor)
        return tensor

    def _hand_in(self, handed: Handed) -> None:
        """Copies bytes to the judge's buffers, on the stream of the call and outside its time.

        Nothing here can be redirected to do work: no operator of torch's is called, no mode of a solution's sees it.
        """
        with _NoTorchFunction():
            for spec, tensor in handed.tensors:
                self._clock.copy(self._base + spec.offset, _address_of(tensor), spec.bytes)
        if self._copied_to is not None:  # what was done to the copies is done to the inputs, where the judge looks
            for tensor, spec in zip(self._given, self._form.sets[0].inputs, strict=True):
                view(self._arena, spec).copy_(tensor)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is nothing but values in memory: not sparse, not a functional wrapper, not known to be zero."""
    return tensor.layout is torch.strided and not torch._is_functional_tensor(tensor) and not tensor._is_zerotensor()


def _written_over(calls: Sequence[Sequence[torch.Tensor]]) -> list[bool]:
    """For each call whether a tensor of its output shares its memory with one of a later call."""
    found, later = list[bool](), set[int]()
    for tensors in reversed(calls):
        addresses = {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}
        found.append(bool(addresses & later))
        later |= addresses
    return found[::-1]


def _overlap(out: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether an output begins inside the memory of an input (a dense tensor)."""
    begin = given.data_ptr()
    return out.numel() > 0 and begin <= out.data_ptr() < begin + given.numel() * given.element_size()


def _used_strides(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The strides that matter: of dimensions with more than one element, where there is any."""
    if 0 in shape:
        return []
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]
