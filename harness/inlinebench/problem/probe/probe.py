"""Probes a problem's reference in a separate process before the judge relies on it.

The probe runs the reference on inputs that are not used again. It finds the shapes of the outputs, which input variants
the reference accepts, and whether the reference draws random numbers, changes its inputs, runs in float64, and fits on
the device. If the reference runs out of memory, fails a device assert or crashes here, no other process is affected:
the judge starts another probe and leaves out the trial that killed the last one.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.compare.tolerance import FACTOR, default_tolerance, perturbation_of
from inlinebench.devices.registry import of
from inlinebench.messages import ProblemAt
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.finite_differences import check_gradients
from inlinebench.problem.forward import InputForm, Output, is_sticky, random_state, run
from inlinebench.problem.gradients import NothingToDifferentiate, with_gradients
from inlinebench.problem.inputs import Draw, draw_traced
from inlinebench.problem.memory import (
    describe_shortage,
    host_refuses_more_than,
    least_bytes,
    least_of,
    meta_bytes,
)
from inlinebench.problem.perturbation import Perturbation, Values
from inlinebench.problem.probe import FORWARD_SEED
from inlinebench.problem.probe.admission import admit
from inlinebench.problem.probe.float64 import runs_in_float64
from inlinebench.problem.probe.records import COUNTED, IN_FLOAT64, PERTURBED, CannotRun, ProbeResult, Trial, Trying
from inlinebench.problem.problem_file import NotHere, PackageMissing, ProblemError, describe, raised
from inlinebench.problem.variants import is_continuous
from inlinebench.problem.work import Forwarded, work_of
from inlinebench.sandbox.watchdog import available_bytes
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.shortage import is_out_of_memory

LARGEST_PERTURBATION = FACTOR * perturbation_of(torch.bfloat16, default_tolerance(torch.bfloat16))
"""The largest relative change of inputs that the tolerance rule makes."""
THROW_AWAY_SEED = 1
"""The seed of the inputs."""


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
    free, module = of(device).free_bytes(), None
    allowed = least_of(most, free)
    trials = _Trials(set(excluded), report)

    def too_large(needed: int | None) -> CannotRun:
        return CannotRun(describe_shortage(needed, free, device, most), own_fault=False, beyond_limits=True)

    try:
        with host_refuses_more_than(available_bytes()):
            problem = with_gradients(problem, device)
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
            admitted = admit(model, drawn, probed.mutated, trials.may, device, varied=varied)
            return replace(probed, continuous=continuous, variants=admitted)
    except (ProblemError, torch.OutOfMemoryError, MemoryError) as error:
        if not is_out_of_memory(error) and not is_out_of_memory(error.__cause__):
            own_fault = not isinstance(error, NotHere | NothingToDifferentiate)
            return CannotRun(str(error), own_fault=own_fault, lacks_package=isinstance(error, PackageMissing))
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
        of(device).synchronize()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise raised(problem, error) from error
    mutated = tuple(
        index for index, (tensor, original) in enumerate(zip(tensors, drawn.tensors, strict=True))
        if not same_bits(tensor, original)
    )
    draws = before != random_state(device)
    has_effect = bool(mutated) or (not output.tensors and any(True for _ in model.buffers()))
    if fault := output.why_unusable() or ("" if has_effect else output.why_meaningless()):
        raise ProblemError(f"{problem.path}: the reference's forward {fault}")
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    if problem.gradients is not None:
        _check_again(problem, model, form, drawn, device)
    work = work_of(
        module, model, Forwarded(drawn, output, mutated, storages), device,
        tf32=torch.backends.cudnn.allow_tf32, may_count=lambda: trials.may(COUNTED),
    )
    # After `work`: a step that hangs after a trial would be blamed on the trial first, and tried twice.
    float64 = (problem.oracle and not draws and not mutated and trials.may(IN_FLOAT64)
               and runs_in_float64(problem, form, drawn, output, device))
    if float64 and problem.gradients is not None and problem.gradients.own:
        check_gradients(module, model, form, drawn, device)
    return ProbeResult(
        inputs=drawn.metas,
        input_form=form,
        outputs=output.metas,
        output_skeleton=output.skeleton,
        output_is_tensor=output.is_tensor,
        mutated=mutated,
        may_alias=any(tensor.untyped_storage().data_ptr() in storages for tensor in output.tensors),
        random=draws and _depends_on_draws(module, form, drawn, output, tensors, device=device),
        float64=float64,
        perturbable=trials.may(PERTURBED) and _survives_perturbation(model, form, drawn, device),
        continuous=(),
        variants={},
        work=work,
        has_nan=output.has_nan(),
        gradients=problem.gradients,
    )


def _check_again(
    problem: ProblemAt, model: torch.nn.Module, form: InputForm, drawn: Draw, device: torch.device
) -> None:
    """Raises ProblemError if the reference's second call raises, as one whose state has the graph of the first does."""
    try:
        run(model, form.arguments([tensor.clone() for tensor in drawn.tensors], drawn.non_tensors), FORWARD_SEED)
        of(device).synchronize()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{problem.path}: the reference's {problem.what_runs} raises in its second call, with what "
                           f"it keeps of the first: {describe(error)}") from error


def _survives_perturbation(model: torch.nn.Module, form: InputForm, drawn: Draw, device: torch.device) -> bool:
    """Runs the reference on perturbed inputs. Returns True unless that kills the process, as a device assert does."""
    values = [Values(tensor) for tensor in drawn.tensors]
    for seed in range(2):
        try:
            changed = Perturbation(LARGEST_PERTURBATION, seed).of(values)
            given = [new.to(old.dtype) for new, old in zip(changed, drawn.tensors, strict=True)]
            run(model, form.arguments(given, drawn.non_tensors), FORWARD_SEED)
            of(device).synchronize()
        except torch.OutOfMemoryError:
            return True
        except Exception as error:
            if is_sticky(error):
                raise
    return True


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
