"""Runs a problem's reference on throw-away inputs, in a process of its own, before the judge relies on it.

It finds the outputs' shapes, what the reference does (draws random numbers, changes its inputs, runs in float64),
which input variants it accepts, and whether all of it fits the device. An out-of-memory, a device assert or a crash
here hurts nobody: the judge starts another rehearsal and leaves out what killed the last one.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inlinebench.compare.fingerprint import same_bits
from inlinebench.compare.tolerance import measure_scale
from inlinebench.messages import ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.forward import InputForm, Output, random_state, run, to_double
from inlinebench.problem.inputs import Draw, draw
from inlinebench.problem.memory import (
    describe_shortage,
    free_bytes,
    host_refuses_more_than,
    least_bytes,
    least_of,
    meta_bytes,
)
from inlinebench.problem.problem_file import PackageMissing, ProblemError, describe
from inlinebench.problem.variants import CHANGING, POWERS_OF_TWO, Variant, apply_variant, is_continuous
from inlinebench.problem.work import work_of
from inlinebench.sandbox.watchdog import available_bytes
from inlinebench.timing.roofline import Work
from inlinebench.wire.arena import TensorMeta
from inlinebench.wire.shortage import is_out_of_memory

THROW_AWAY_SEED = 1
FORWARD_SEED = 2

SAME_WORK, SAME_ROUNDED_WORK = 1e-6, 1e-2
"""By which results of the same work may differ where nothing but the order of additions does: in float64, and in the
reference's own dtype."""
SLOW_S = 2.0
"""From which on a call in float64 isn't made twice."""
FAR, EXPLAINED, NOTHING = 0.05, 100.0, 1e-3
"""The share of an output's size from which on the oracle has to be explained; how many times what the last bit of the
inputs makes may do so, as rounding within the reference adds to theirs; and the share of the reference that is nothing.
"""

Trial = tuple[Variant | None, tuple[int, ...]]
"""Inputs, by position, that take a variant; or, with None, the whole reference in float64."""
IN_FLOAT64: Trial = (None, ())


@dataclass(frozen=True)
class ProbeResult:
    """What the reference did. `variants` tells which inputs (by position) take which variant.

    `written_bytes` is what any solution must write at least: the largest piece of memory that outputs lie in, of those
    that aren't an input's. Several outputs may turn out to be the same values, and then one is enough.
    """

    inputs: tuple[TensorMeta, ...]
    input_form: InputForm
    outputs: tuple[TensorMeta, ...]
    output_skeleton: Any
    output_is_tensor: tuple[bool, ...]
    mutated: tuple[int, ...]
    may_alias: bool
    written_bytes: int
    random: bool
    float64: bool
    variants: dict[Variant, tuple[int, ...]]
    work: Work


@dataclass(frozen=True)
class CannotRun:
    """Why the problem has no rehearsal: its own fault, or what this machine lacks for it."""

    reason: str
    own_fault: bool = True


@dataclass(frozen=True)
class Done:
    """Sent at the end of a rehearsal. A process that isn't `healthy` can't go on with others: its GPU reports nothing
    but errors from now on."""

    outcome: ProbeResult | CannotRun
    healthy: bool


@dataclass(frozen=True)
class Trying:
    """Sent before a trial that might kill the process."""

    trial: Trial


def run_probe(
    problem: ProblemAt,
    device: torch.device,
    variants: bool,
    excluded: Iterable[Trial],
    *,
    report: Callable[[Trying], None],
    most: int | None = None,
) -> ProbeResult | CannotRun:
    """One rehearsal. `excluded` trials are known to kill the process; `most` are the bytes that may be used of the
    device's memory. What a trial does to the GPU leaves here as an exception, which ends the process.

    Whether the problem fits is tried out, since that takes no time where it does; how much it needs is estimated where
    it doesn't.
    """
    free, module = free_bytes(device), None
    allowed = least_of(most, free)
    trials = _Trials(set(excluded), report)

    def too_large(needed: int | None) -> CannotRun:
        return CannotRun(describe_shortage(needed, free, device, most), own_fault=False)

    try:
        with host_refuses_more_than(available_bytes()):
            module = problem_file.load_at(problem)
            model = problem_file.construct(module).to(device)
            drawn = draw(module, THROW_AWAY_SEED, device)
            probed = _observe(problem, module, model, drawn, device, trials=trials)
            if (needed := least_bytes(probed.inputs, model, probed.outputs)) > allowed:
                return too_large(needed)
            admitted = {}
            if variants and getattr(module, "INPUT_VARIANTS", True):
                admitted = _admit(model, drawn, probed.mutated, trials, device)
            return ProbeResult(**{**vars(probed), "variants": admitted})
    except (ProblemError, torch.OutOfMemoryError, MemoryError) as error:
        if not is_out_of_memory(error) and not is_out_of_memory(error.__cause__):
            return CannotRun(str(error), own_fault=not isinstance(error, PackageMissing))
    except Exception as error:  # of the GPU, which tells late what the reference's kernels did
        if trials.any_made:
            raise
        if not is_out_of_memory(error):
            return CannotRun(f"{problem.path}: the reference can't be tried: {describe(error)}")
    needed = 0 if module is None else meta_bytes(module)
    return too_large(needed if needed > allowed else None)


class _Trials:
    """Asks whether a trial is to be made, and says so before it is."""

    def __init__(self, excluded: Collection[Trial], report: Callable[[Trying], None]) -> None:
        self._excluded, self._report = excluded, report
        self.any_made = False

    def may(self, trial: Trial) -> bool:
        """Whether the trial is made, which somebody hears of first."""
        if trial in self._excluded:
            return False
        self._report(Trying(trial))
        self.any_made = True
        return True


def _observe(
    problem: ProblemAt, module: types.ModuleType, model: torch.nn.Module, drawn: Draw, device: torch.device, *,
    trials: _Trials,
) -> ProbeResult:
    form = InputForm(drawn.skeleton, drawn.is_tensor)
    tensors = [tensor.clone() for tensor in drawn.tensors]
    before = None
    try:
        torch.manual_seed(FORWARD_SEED)
        arguments = form.arguments(tensors, drawn.non_tensors)
        with torch.no_grad():
            before = random_state(device)
            output = Output.of(model(*arguments))
        _synchronize(device)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{problem.path}: the reference's forward raises {describe(error)}") from error
    mutated = tuple(
        index for index, (tensor, original) in enumerate(zip(tensors, drawn.tensors, strict=True))
        if not same_bits(tensor, original)
    )
    draws_random = not torch.equal(before, random_state(device))
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    return ProbeResult(
        inputs=drawn.metas,
        input_form=form,
        outputs=output.metas,
        output_skeleton=output.skeleton,
        output_is_tensor=output.is_tensor,
        mutated=mutated,
        may_alias=any(tensor.untyped_storage().data_ptr() in storages for tensor in output.tensors),
        written_bytes=_written_bytes(output, storages),
        random=draws_random,
        float64=(not draws_random and not mutated and trials.may(IN_FLOAT64)
                 and _runs_in_float64(problem, form, drawn, output, device)),
        variants={},
        work=work_of(module, model, drawn, output, mutated=mutated, storages=storages, device=device,
                     tf32=torch.backends.cudnn.allow_tf32),
    )


def _written_bytes(output: Output, inputs: Collection[int]) -> int:
    pieces: dict[int, int] = {}
    for tensor in output.tensors:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in inputs:
            size = pieces.get(storage.data_ptr(), 0) + tensor.numel() * tensor.element_size()
            pieces[storage.data_ptr()] = min(size, storage.nbytes())
    return max(pieces.values(), default=0)


def _runs_in_float64(
    problem: ProblemAt, form: InputForm, drawn: Draw, output: Output, device: torch.device
) -> bool:
    """Whether the whole reference runs in float64 and is an oracle there: outputs of the same shapes, nothing kept from
    call to call but buffers, and no more apart from its own dtype than rounding makes it."""
    def call(model: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        found = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED))
        kept = {buffer.untyped_storage().data_ptr() for buffer in model.buffers()}
        _synchronize(device)
        return [each.clone() if each.untyped_storage().data_ptr() in kept else each for each in found.tensors]

    def call_twice(model: torch.nn.Module, tensors: Sequence[torch.Tensor], apart: float) -> list[torch.Tensor] | None:
        """The outputs; None if a second call from the same buffers gives others, as the model keeps something else."""
        begun = {name: buffer.clone() for name, buffer in model.named_buffers()}
        begin, first = time.monotonic(), call(model, tensors)
        if apart == SAME_WORK and time.monotonic() - begin > SLOW_S:  # there are GPUs with next to no float64
            own = problem_file.construct(module).to(device)
            return None if call_twice(own, drawn.tensors, SAME_ROUNDED_WORK) is None else first
        _restore(model, begun)
        return first if all(map(partial(_close, apart=apart), call(model, tensors), first)) else None

    try:
        module = problem_file.load_at(problem)
        wide = call_twice(problem_file.construct(module).double().to(device), to_double(drawn.tensors), SAME_WORK)
        if wide is None or [each.shape for each in wide] != [each.shape for each in output.tensors]:
            return False  # what is kept beside buffers the oracle, which isn't always asked, would not have
        far = [index for index, exact in enumerate(wide) if _far(output.tensors[index], exact)]
        moved = call(problem_file.construct(module).to(device), list(map(_moved, drawn.tensors))) if far else []
        return all(_is_rounding(output.tensors[index], wide[index], moved[index]) for index in far)
    except (torch.OutOfMemoryError, MemoryError):
        return False
    except Exception as error:
        if is_sticky(error):
            raise
        return False


def _restore(model: torch.nn.Module, begun: Mapping[str, torch.Tensor]) -> None:
    """Gives a model the buffers that it began with."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in begun:
                buffer.copy_(begun[name])


def _close(one: torch.Tensor, other: torch.Tensor, apart: float) -> bool:
    """Whether two results of the same work differ by no more than such a share of the largest value."""
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    size = float(torch.nan_to_num(other.abs(), posinf=0.0).amax()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=apart, atol=apart * size, equal_nan=True)


def _far(own: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether a floating output differs from the one in float64 by more than any rounding that can be overlooked.

    Not where that is next to nothing: what is zero in theory is rounding in practice.
    """
    if not own.is_floating_point():
        return False
    size, own_size = (measure_scale(each.double(), each.double()).oracle_rms for each in (exact, own))
    return size > NOTHING * own_size and _apart(own, exact) > FAR * size


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return measure_scale(other.double(), one.double()).reference_error_rms


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """An input with every element moved by about its last bit, up or down."""
    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(FORWARD_SEED)
    signs = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device) * 2 - 1
    return (tensor.double() * (1 + signs * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)


def _is_rounding(own: torch.Tensor, exact: torch.Tensor, moved: torch.Tensor) -> bool:
    """Whether inputs that are off by their last bit explain how far apart an output is from the one in float64.

    If not, float64 makes another function of the reference: `log(x + finfo(x.dtype).eps)` is one.
    """
    return _apart(own, exact) <= EXPLAINED * _apart(moved, own)


def _admit(
    model: torch.nn.Module, drawn: Draw, mutated: Collection[int], trials: _Trials, device: torch.device
) -> dict[Variant, tuple[int, ...]]:
    continuous = [index for index, tensor in enumerate(drawn.tensors) if is_continuous(tensor)]
    form = InputForm(drawn.skeleton, drawn.is_tensor)

    def accepts(variant: Variant, positions: tuple[int, ...]) -> bool:
        powers = (min(POWERS_OF_TWO), max(POWERS_OF_TWO)) if variant is Variant.SCALED else (None,)
        return trials.may((variant, positions)) and all(
            _stays_finite(
                model, form, drawn, device, variant=variant, power=power, positions=positions, mutated=mutated
            )
            for power in powers
        )

    admitted: dict[Variant, tuple[int, ...]] = {}
    for variant in CHANGING:
        alone = tuple(index for index in continuous if accepts(variant, (index,)))
        if len(alone) == 1 or (alone and accepts(variant, alone)):
            admitted[variant] = alone
    return admitted


def _stays_finite(
    model: torch.nn.Module, form: InputForm, drawn: Draw, device: torch.device, *, variant: Variant,
    power: int | None, positions: tuple[int, ...], mutated: Collection[int],
) -> bool:
    """Whether outputs are finite, and the reference changes no input that it doesn't change as drawn: `relu_` may."""
    generator = torch.Generator(device).manual_seed(FORWARD_SEED)
    tensors = [tensor.clone() for tensor in drawn.tensors]
    for index in positions:
        apply_variant(variant, tensors[index], generator, power)
    given = [tensor.clone() for tensor in tensors]
    try:
        output = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED))
        if any(not same_bits(tensors[index], given[index]) for index in range(len(given)) if index not in mutated):
            return False
        return all(bool(torch.isfinite(tensor).all()) for tensor in output.tensors)
    except Exception as error:
        if is_sticky(error):
            raise
        return False


def is_sticky(error: Exception) -> bool:
    """Whether a CUDA error leaves the process without a usable context."""
    return "CUDA error" in str(error) and not is_out_of_memory(error)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
