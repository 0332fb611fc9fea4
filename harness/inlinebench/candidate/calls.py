"""Runs the calls of a solution: reads inputs from the judge's buffers, times `forward`, and copies outputs back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch

from inlinebench.candidate.held_call import HoldingClock, hold
from inlinebench.devices.registry import of
from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.wire.arena import BufferSet, TensorSpec, used_strides, view
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.locations import Location, Places
from inlinebench.wire.tree import flatten, merge, plain, structure_differs, unflatten

_address_of = torch.Tensor.data_ptr
_NoTorchFunction = torch._C.DisableTorchFunction
"""Bound here, before a solution can replace them."""
COPIED = "an output is in memory that CUDA cannot share with the judge, so its copy counts as part of a held call"


class OutputMismatch(Exception):
    """The output does not have the reference's structure, shapes or dtypes. The message says how it differs."""


@dataclass(frozen=True)
class CallForm:
    """The structure of arguments and outputs, and the regions of their tensors in the shared buffers."""

    input_skeleton: Any
    """The nesting of the arguments, as `inlinebench.wire.tree.flatten` returns it."""
    input_is_tensor: tuple[bool, ...]
    """For each leaf of the arguments, whether it is a tensor."""
    output_skeleton: Any
    """The nesting of the output."""
    output_is_tensor: tuple[bool, ...]
    """For each leaf of the output, whether it is a tensor."""
    sets: tuple[BufferSet, ...]
    """Sets of input and output buffers. A single call uses the set that it is told; a batch uses one set for each call.
    """
    states: dict[str, TensorSpec]
    """The region of each state that the judge compares, by the solution's name of the buffer."""
    may_alias: bool
    """Whether an output may share memory with an input."""


@dataclass(frozen=True)
class Handed:
    """The output of a call, converted to what the judge expects."""

    tensors: list[tuple[TensorSpec, torch.Tensor]]
    """Output tensors and states, each with the region to copy it to."""
    plain: list[Any]
    """The outputs that are not tensors."""


class Caller:
    """Runs the calls of one solution.

    Args:
        model: the solution's model.
        clock: times the calls.
        arena: the judge's shared memory (1-d uint8).
        form: the structure of arguments and outputs.
        copied_to: gives the solution copies of the inputs on this device instead of views of the arena. On the CPU the
            copies are in memory whose bounds the allocator guards. On a GPU this is for an arena in host memory. Every
            second call reuses the copies' addresses, so results that a solution cached by address are wrong.
        on_result: called with the address and size of each output when a call has ended, and before it is freed.

    `notes` collects conversions of outputs.
    """

    def __init__(
        self, model: torch.nn.Module, clock: Clock, arena: torch.Tensor, form: CallForm,
        copied_to: torch.device | None = None, *, on_result: Callable[[int, int], None] | None = None,
    ) -> None:
        self._model, self._clock, self._arena, self._form, self._copied_to = model, clock, arena, form, copied_to
        self._on_result = on_result
        self._device = copied_to or arena.device
        self._given: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []
        self._locator = of(arena.device).locator(arena)
        self._before_call = of(self._device).before_call(clock, [spec.bytes for spec in form.sets[0].outputs])
        with _NoTorchFunction():
            self._base = _address_of(arena)
        self.notes: set[str] = set()

    def call(
        self, non_tensors: Sequence[Any], random_seed: int, blocking_ms: float, number: int = 0
    ) -> tuple[Sample, list[Any]]:
        """Makes one timed call on the set of buffers with this number. Returns the sample and the non-tensor outputs.

        `blocking_ms` is the limit of the blocking kernel; 0 means none. Raises OutputMismatch if the output differs
        in structure, shape or dtype, and whatever `forward` raises.
        """
        buffers = self._form.sets[number]
        arguments = self._arguments(buffers, non_tensors)
        given = [] if self._copied_to else [(self._base + spec.offset, spec.bytes) for spec in buffers.inputs]
        self._before_call.prepare(given)
        seed_all(random_seed)
        with torch.no_grad():
            work = partial(self._forward, buffers, arguments)
            handed, sample = timed_call(self._clock, work, self._hand_in, blocking_ms)
        if self._on_result is not None:
            for spec, tensor in handed.tensors:
                with _NoTorchFunction():
                    address = _address_of(tensor)
                self._on_result(address, spec.bytes)
        return sample, handed.plain

    def hold(
        self, non_tensors: Sequence[Any], random_seed: int, number: int, on_host: bool,
        on_held: Callable[[Places | None], None],
    ) -> list[Any]:
        """Makes a call that the judge releases and times, and whose outputs it copies itself. Returns the non-tensor
        outputs.

        `on_host` and `on_held` are those of `inlinebench.candidate.held_call.hold`. Where the results of a call on the
        host are is not known when it is announced, so they are copied to the judge's buffers. Raises as `call` does.

        A call on the host begins with cold caches, so one on the previous inputs is made before, as the stand-in's
        process makes one. It would change states, so where there are some it is left out.
        """
        buffers = self._form.sets[number]
        if on_host and not self._form.states:
            with torch.no_grad():
                self._model(*self._arguments(buffers, non_tensors))
            self._holding.synchronize()
        arguments = self._arguments(buffers, non_tensors)
        seed_all(random_seed)
        with torch.no_grad():
            work, share = partial(self._forward, buffers, arguments), self._copy_all if on_host else self._share
            return hold(self._holding, work, share, on_host, on_held).plain

    @property
    def _holding(self) -> HoldingClock:
        return cast("HoldingClock", self._clock)  # calls are held on a GPU only, whose clock can do it

    def loop(
        self, calls: Sequence[tuple[Sequence[Any], int | None]], on_held: Callable[[], None]
    ) -> tuple[list[list[Any]], list[bool]]:
        """Makes several calls on one set of buffers each, in a Python loop that the judge releases and times.

        Each call is a pair of its non-tensor arguments and its seed, which is set before `forward` unless it is None.
        `on_held` is called when the loop can be released. Returns the non-tensor outputs of each call, and for each
        whether a later call reused the memory of its output. Raises as `call` does.
        """
        sets, clock = self._form.sets, self._holding
        given = [(self._arguments(buffers, non_tensors), self._given, seed)
                 for buffers, (non_tensors, seed) in zip(sets, calls, strict=False)]
        values: list[Any] = []
        clock.synchronize()
        with torch.no_grad():
            clock.wait_for_release(on_held)
            for arguments, _, seed in given:
                if seed is not None:
                    seed_all(seed)
                values.append(self._model(*arguments))
            clock.done()
            handed = []
            for buffers, (_, tensors, _), value in zip(sets, given, values, strict=False):
                self._given = tensors
                handed.append(self._in_form(value, buffers))
        # States come after the outputs. They are the same tensors in every call, and the judge compares the last ones.
        outputs = len(sets[0].outputs)
        written_over = _written_over([[tensor for _, tensor in each.tensors[:outputs]] for each in handed])
        for each in handed:
            self._hand_in(each)
        clock.synchronize()
        return [each.plain for each in handed], written_over

    def _arguments(self, buffers: BufferSet, non_tensors: Sequence[Any]) -> Any:
        tensors = [view(self._arena, spec) for spec in buffers.inputs]
        self._given = tensors if self._copied_to is None else self._copied(tensors, self._copied_to)
        form = self._form
        return unflatten(form.input_skeleton, merge(form.input_is_tensor, self._given, copy.deepcopy(non_tensors)))

    def read_again(self, last: int) -> None:
        """Copies the last inputs of the current call again, which the judge has written since."""
        if self._copied_to is not None:
            for copied, spec in zip(self._given[-last:], self._form.sets[0].inputs[-last:], strict=True):
                copied.copy_(view(self._arena, spec))

    def _copied(self, tensors: Sequence[torch.Tensor], to: torch.device) -> list[torch.Tensor]:
        """Returns copies of tensors, alternately in new memory and in the memory of the previous copies."""
        copies, self._copies = self._copies, []
        if [each.shape for each in copies] == [each.shape for each in tensors]:
            for copied, tensor in zip(copies, tensors, strict=True):
                copied.copy_(tensor)
            return copies
        self._copies = [tensor.to(to, copy=True) for tensor in tensors]
        return [copied.detach() for copied in self._copies]  # the solution may modify these tensor objects

    def _forward(self, buffers: BufferSet, arguments: Any) -> Handed:
        """Runs `forward` and converts its outputs and states if necessary. All of this is inside the timed region."""
        return self._in_form(self._model(*arguments), buffers)

    def _in_form(self, value: Any, buffers: BufferSet) -> Handed:
        skeleton, leaves = flatten(value)
        if differs := structure_differs(value, skeleton, self._form.output_skeleton):
            raise OutputMismatch(differs)
        handed = Handed([], [])
        for leaf, is_tensor in zip(leaves, self._form.output_is_tensor, strict=True):
            if is_tensor:
                spec = buffers.outputs[len(handed.tensors)]
                handed.tensors.append((spec, self._conform(leaf, spec)))
            elif isinstance(plain(leaf), bool | int | float | str | None):
                handed.plain.append(plain(leaf))
            else:
                raise OutputMismatch(f"an output is {type(leaf).__name__}; the reference returns a plain Python value")
        own = dict(self._model.named_buffers())
        for name, spec in self._form.states.items():
            if name not in own or tuple(own[name].shape) != spec.shape:
                raise OutputMismatch(f"the buffer {name} is missing or has a different shape after the call")
            handed.tensors.append((spec, self._lay_out(own[name].detach(), spec)))
        return handed

    def _conform(self, out: object, spec: TensorSpec) -> torch.Tensor:
        if type(out) is torch.nn.Parameter:
            out = out.detach()
        if type(out) is not torch.Tensor:
            raise OutputMismatch(f"an output is {type(out).__name__}; the reference returns exactly torch.Tensor")
        if tuple(out.shape) != spec.shape:
            raise OutputMismatch(f"an output has shape {list(out.shape)}; the reference's has {list(spec.shape)}")
        if out.dtype is not spec.torch_dtype:
            dtype = str(out.dtype).removeprefix("torch.")
            raise OutputMismatch(f"an output is {dtype}; the reference's is {spec.dtype}")
        out = self._lay_out(out, spec)
        if not self._form.may_alias and any(_overlap(out, given) for given in self._given):
            raise OutputMismatch("an output shares memory with an input; the reference's doesn't")
        return out

    def _lay_out(self, tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
        """Returns a tensor with the device and the strides of a region of the arena, converting it if necessary."""
        if not _is_plain(tensor):
            raise OutputMismatch("an output is a tensor whose values are not computed yet")
        if tensor.device != self._device:
            self.notes.add(f"output converted from {tensor.device.type}")
            tensor = tensor.to(self._device)
        same_strides = used_strides(tensor.shape, tensor.stride()) == used_strides(spec.shape, spec.strides)
        if not same_strides or tensor.is_neg() or tensor.is_conj():
            self.notes.add("output converted from another layout")
            target = torch.empty_strided(spec.shape, spec.strides, dtype=tensor.dtype, device=tensor.device)
            tensor = target.copy_(tensor)
        return tensor

    def _hand_in(self, handed: Handed) -> None:
        """Copies bytes to the judge's buffers, on the stream of the call but outside its timed region.

        A solution cannot intercept this to do work: it calls no PyTorch operator, and no mode of the solution sees it.
        """
        with _NoTorchFunction():
            for spec, tensor in handed.tensors:
                self._clock.copy(self._base + spec.offset, _address_of(tensor), spec.bytes)
        if self._copied_to is not None:  # so that the judge sees changes of the copies
            for tensor, spec in zip(self._given, self._form.sets[0].inputs, strict=True):
                view(self._arena, spec).copy_(tensor)

    def _copy_all(self, handed: Handed) -> Places:
        self._hand_in(handed)
        return ()

    def _share(self, handed: Handed) -> Places:
        """Returns where outputs and states are. What CUDA cannot share is copied to the judge's buffers."""
        locator, places = self._locator, list[Location | None]()
        assert locator is not None  # calls are held on a GPU only
        with _NoTorchFunction():
            for spec, tensor in handed.tensors:
                place = locator.locate(_address_of(tensor)) if spec.bytes else None
                if place is None and spec.bytes:
                    self._clock.copy(self._base + spec.offset, _address_of(tensor), spec.bytes)
                    self.notes.add(COPIED)
                places.append(place)
        return places


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is backed by plain memory: not sparse, not a functional wrapper, not a zero tensor."""
    return tensor.layout is torch.strided and not torch._is_functional_tensor(tensor) and not tensor._is_zerotensor()


def _written_over(calls: Sequence[Sequence[torch.Tensor]]) -> list[bool]:
    """Returns for each call whether a tensor of its output shares memory with one of a later call."""
    found, later = list[bool](), set[int]()
    for tensors in reversed(calls):
        addresses = {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}
        found.append(bool(addresses & later))
        later |= addresses
    return found[::-1]


def _overlap(out: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether an output begins inside the memory of an input, which is a dense tensor."""
    begin = given.data_ptr()
    return out.numel() > 0 and begin <= out.data_ptr() < begin + given.numel() * given.element_size()
