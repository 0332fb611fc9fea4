"""Probes a problem's reference in a separate process before the judge relies on it.

The probe runs the reference on inputs that are not used again. It finds the shapes of the outputs, which input variants
the reference accepts, and whether the reference draws random numbers, changes its inputs, runs in float64, and fits on
the device. If the reference runs out of memory, fails a device assert or crashes here, no other process is affected:
the judge starts another probe and leaves out the trial that killed the last one.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from inlinebench.compare.fingerprint import same_bits
from inlinebench.compare.tolerance import measure_scale
from inlinebench.messages import ProblemAt
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.forward import InputForm, Output, random_state, run, to_double
from inlinebench.problem.inputs import Draw, draw_traced
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
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.shortage import is_out_of_memory

THROW_AWAY_SEED = 1
FORWARD_SEED = 2

SAME_WORK, SAME_ROUNDED_WORK = 1e-6, 1e-2
"""How far two runs of the same work may differ through the order of additions alone, as a share of the largest value:
in float64, and in the reference's own dtype."""
SLOW_S = 2.0
"""A call in float64 that takes longer than this is not repeated. The reference is repeated in its own dtype instead."""
FAR = 0.05
"""If the oracle differs from the reference by more than this share of the output's size, rounding must explain it."""
EXPLAINED = 100.0
"""Rounding explains a difference up to this many times the effect of the inputs' last bit. The factor accounts for
rounding within the reference."""
NOTHING = 1e-3
"""An output in float64 below this share of the reference's output is zero in theory, so a difference is rounding."""

Trial = tuple[str, tuple[int, ...]]
"""A run that might crash or hang: a variant and the positions of the inputs that take it, or one of the two below."""
IN_FLOAT64: Trial = ("in float64", ())
COUNTED: Trial = ("with operations counted", ())


@dataclass(frozen=True)
class ProbeResult:
    """What the probe found out about a reference."""

    inputs: tuple[TensorMeta, ...]
    """Dtype, shape and strides of each input tensor."""
    input_form: InputForm
    """The structure of the arguments of `forward`."""
    outputs: tuple[TensorMeta, ...]
    """Dtype, shape and strides of each output tensor."""
    output_skeleton: Any
    """The nesting of the output, as `inlinebench.wire.tree.flatten` returns it."""
    output_is_tensor: tuple[bool, ...]
    """For each leaf of the output, whether it is a tensor."""
    mutated: tuple[int, ...]
    """The positions of the inputs that the reference changes in place."""
    may_alias: bool
    """Whether an output of the reference shares memory with an input, so that a solution's output may as well."""
    written_bytes: int
    """The bytes that any solution must write: the largest of the outputs' storages, without those of inputs. Only one
    storage counts, because several outputs may turn out to have equal values."""
    random: bool
    """Whether the outputs depend on random numbers that `forward` draws."""
    float64: bool
    """Whether the reference in float64 can be the oracle."""
    continuous: tuple[int, ...]
    """The positions of the inputs whose values may change a little. Empty without variants."""
    variants: dict[Variant, tuple[int, ...]]
    """For each admitted variant, the positions of the inputs that take it."""
    work: Work
    """The least bytes and operations of one call."""


@dataclass(frozen=True)
class CannotRun:
    """The reference cannot be evaluated."""

    reason: str
    """The reason, for the result."""
    own_fault: bool = True
    """Whether the problem is at fault. False if this machine lacks memory or a package."""
    lacks_package: bool = False
    """Whether the file imports a package that is not installed."""
    beyond_limits: bool = False
    """Whether it takes too much memory or time, so that a smaller shape may do."""


@dataclass(frozen=True)
class ProbeDone:
    """Probe to judge: the probe of a problem has ended."""

    outcome: ProbeResult | CannotRun
    """What the probe found, or why the reference cannot be evaluated."""
    healthy: bool
    """Whether the process can probe other problems. After a CUDA error, every CUDA call in the process fails."""


@dataclass(frozen=True)
class Trying:
    """Probe to judge: a trial begins that might crash or hang."""

    trial: Trial
    """The trial."""


def run_probe(
    problem: ProblemAt,
    device: torch.device,
    variants: bool,
    excluded: Iterable[Trial],
    *,
    report: Callable[[Trying], None],
    most: int | None = None,
) -> ProbeResult | CannotRun:
    """Probes one problem.

    Whether the problem fits in memory is found by running it. How much it needs is estimated only if it does not fit.
    A CUDA error in a trial propagates as an exception and ends the process.

    Args:
        problem: the problem to probe.
        device: where to run the reference.
        variants: whether to try input variants.
        excluded: trials that are known to crash or hang.
        report: is called before each trial.
        most: the most device memory that the problem may use, in bytes.
    """
    free, module = free_bytes(device), None
    allowed = least_of(most, free)
    trials = _Trials(set(excluded), report)

    def too_large(needed: int | None) -> CannotRun:
        return CannotRun(describe_shortage(needed, free, device, most), own_fault=False, beyond_limits=True)

    try:
        with host_refuses_more_than(available_bytes()):
            module = problem_file.load_at(problem)
            model = problem_file.construct(module).to(device)
            drawn, straight = draw_traced(module, THROW_AWAY_SEED, device)
            probed = _observe(problem, module, model, drawn, device, trials=trials)
            if (needed := least_bytes(probed.inputs, model, probed.outputs)) > allowed:
                return too_large(needed)
            if not variants or not getattr(module, "INPUT_VARIANTS", True):
                return probed
            continuous = tuple(index for index, tensor in enumerate(drawn.tensors) if is_continuous(tensor))
            varied = [index for index in continuous if index in straight]
            admitted = _admit(model, drawn, probed.mutated, trials, device, varied=varied)
            return replace(probed, continuous=continuous, variants=admitted)
    except (ProblemError, torch.OutOfMemoryError, MemoryError) as error:
        if not is_out_of_memory(error) and not is_out_of_memory(error.__cause__):
            lacks_package = isinstance(error, PackageMissing)
            return CannotRun(str(error), own_fault=not lacks_package, lacks_package=lacks_package)
    except Exception as error:  # a CUDA error, which the GPU reports some time after the kernel that caused it
        if trials.any_made:
            raise
        if not is_out_of_memory(error):
            return CannotRun(f"{problem.path}: the reference fails: {describe(error)}")
    needed = 0 if module is None else meta_bytes(module)
    return too_large(needed if needed > allowed else None)


class _Trials:
    """Decides which trials to make, and reports each one before it begins."""

    def __init__(self, excluded: Collection[Trial], report: Callable[[Trying], None]) -> None:
        self._excluded, self._report = excluded, report
        self.any_made = False

    def may(self, trial: Trial) -> bool:
        """Whether to make the trial. Reports the trial if so."""
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
        seed_all(FORWARD_SEED)
        arguments = form.arguments(tensors, drawn.non_tensors)
        with torch.no_grad():
            before = random_state(device)
            with own_code.step(own_code.FORWARD):
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
    draws = before != random_state(device)
    has_effect = bool(mutated) or (not output.tensors and any(True for _ in model.buffers()))
    if fault := output.why_unusable() or ("" if has_effect else output.why_meaningless()):
        raise ProblemError(f"{problem.path}: the reference's forward {fault}")
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    work = work_of(
        module, model, drawn, output, mutated=mutated, storages=storages, device=device,
        tf32=torch.backends.cudnn.allow_tf32, may_count=lambda: trials.may(COUNTED),
    )
    return ProbeResult(
        inputs=drawn.metas,
        input_form=form,
        outputs=output.metas,
        output_skeleton=output.skeleton,
        output_is_tensor=output.is_tensor,
        mutated=mutated,
        may_alias=any(tensor.untyped_storage().data_ptr() in storages for tensor in output.tensors),
        written_bytes=_written_bytes(output, storages),
        random=draws and _depends_on_draws(module, form, drawn, output, tensors, device=device),
        float64=(problem.oracle and not draws and not mutated and trials.may(IN_FLOAT64)
                 and _runs_in_float64(problem, form, drawn, output, device)),
        continuous=(),
        variants={},
        work=work,
    )


def _depends_on_draws(
    module: types.ModuleType, form: InputForm, drawn: Draw, output: Output, changed: Sequence[torch.Tensor], *,
    device: torch.device,
) -> bool:
    """Whether a call with another random state than `FORWARD_SEED` gives another output, or changes inputs otherwise.

    `output` and `changed` are the output and the inputs after a call with `FORWARD_SEED`.
    """
    tensors = [tensor.clone() for tensor in drawn.tensors]
    model = problem_file.construct(module).to(device)
    other = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED + 1))
    if (other.metas, other.non_tensors) != (output.metas, output.non_tensors):
        return True
    return not all(map(same_bits, (*output.dense().tensors, *changed), (*other.dense().tensors, *tensors)))


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
    """Whether the reference in float64 can be the oracle.

    It must run, give outputs of the same shapes, keep nothing but buffers from call to call, and differ from the
    reference in its own dtype by no more than rounding explains.
    """
    def call(model: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        result = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED))
        buffers = {buffer.untyped_storage().data_ptr() for buffer in model.buffers()}
        _synchronize(device)
        return [each.clone() if each.untyped_storage().data_ptr() in buffers else each for each in result.tensors]

    def call_twice(model: torch.nn.Module, tensors: Sequence[torch.Tensor], share: float) -> list[torch.Tensor] | None:
        """Returns the outputs, or None if a second call from the same buffers gives others: then the model keeps state
        outside of its buffers."""
        initial = {name: buffer.clone() for name, buffer in model.named_buffers()}
        begin, first = time.monotonic(), call(model, tensors)
        if share == SAME_WORK and time.monotonic() - begin > SLOW_S:  # float64 is very slow on some GPUs
            own = problem_file.construct(module).to(device)
            return None if call_twice(own, drawn.tensors, SAME_ROUNDED_WORK) is None else first
        _restore(model, initial)
        return first if all(map(partial(_close, share=share), call(model, tensors), first)) else None

    try:
        module = problem_file.load_at(problem)
        wide = call_twice(problem_file.construct(module).double().to(device), to_double(drawn.tensors), SAME_WORK)
        if wide is None or [each.shape for each in wide] != [each.shape for each in output.tensors]:
            return False  # the oracle does not run in every call, so it would miss state outside of buffers
        far = [index for index, exact in enumerate(wide) if _far(output.tensors[index], exact)]
        perturbed = call(problem_file.construct(module).to(device), list(map(_perturb, drawn.tensors))) if far else []
        return all(_is_rounding(output.tensors[index], wide[index], perturbed[index]) for index in far)
    except (torch.OutOfMemoryError, MemoryError):
        return False
    except Exception as error:
        if is_sticky(error):
            raise
        return False


def _restore(model: torch.nn.Module, initial: Mapping[str, torch.Tensor]) -> None:
    """Restores the initial values of a model's buffers."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in initial:
                buffer.copy_(initial[name])


def _close(one: torch.Tensor, other: torch.Tensor, share: float) -> bool:
    """Whether two results of the same work differ by at most a share of the largest value."""
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    size = float(torch.nan_to_num(other.abs(), posinf=0.0).amax()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=share, atol=share * size, equal_nan=True)


def _far(own: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether a floating-point output differs from the one in float64 so much that rounding must explain it.

    False if the output in float64 is almost zero, because then the reference's output is rounding error.
    """
    if not own.is_floating_point():
        return False
    size, own_size = (measure_scale(each.double(), each.double()).oracle_rms for each in (exact, own))
    return size > NOTHING * own_size and _rms_difference(own, exact) > FAR * size


def _rms_difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return measure_scale(other.double(), one.double()).reference_error_rms


def _perturb(tensor: torch.Tensor) -> torch.Tensor:
    """Returns an input with every floating-point element changed by about its last bit, up or down at random."""
    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(FORWARD_SEED)
    signs = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device) * 2 - 1
    return (tensor.double() * (1 + signs * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)


def _is_rounding(own: torch.Tensor, exact: torch.Tensor, perturbed: torch.Tensor) -> bool:
    """Whether rounding explains the difference between an output and the one in float64.

    `perturbed` is the output for inputs that are off by their last bit. If rounding does not explain the difference,
    the reference is a different function in float64, such as `log(x + finfo(x.dtype).eps)`.
    """
    return _rms_difference(own, exact) <= EXPLAINED * _rms_difference(perturbed, own)


def _admit(
    model: torch.nn.Module, drawn: Draw, mutated: Collection[int], trials: _Trials, device: torch.device, *,
    varied: Sequence[int],
) -> dict[Variant, tuple[int, ...]]:
    """Returns for each variant the positions of the inputs, out of `varied`, that the reference accepts it for."""
    form = InputForm(drawn.skeleton, drawn.is_tensor)

    def accepts(variant: Variant, positions: tuple[int, ...]) -> bool:
        power = POWERS_OF_TWO[variant][-1] if variant in POWERS_OF_TWO else None
        return trials.may((variant, positions)) and _stays_finite(
            model, form, drawn, device, variant=variant, power=power, positions=positions, mutated=mutated)

    admitted: dict[Variant, tuple[int, ...]] = {}
    for variant in CHANGING:
        alone = tuple(index for index in varied if accepts(variant, (index,)))
        if len(alone) == 1 or (alone and accepts(variant, alone)):
            admitted[variant] = alone
    return admitted


def _stays_finite(
    model: torch.nn.Module, form: InputForm, drawn: Draw, device: torch.device, *, variant: Variant,
    power: int | None, positions: tuple[int, ...], mutated: Collection[int],
) -> bool:
    """Whether the outputs for a variant are finite, and the reference changes no further inputs, as `relu_` might."""
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
    """Whether an exception is a CUDA error that makes the process's CUDA context unusable."""
    return "CUDA error" in str(error) and not is_out_of_memory(error)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
