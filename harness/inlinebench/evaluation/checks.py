"""Checks one call after the other against reference and oracle, and sums up how far off the outputs were."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.compare.mismatch import find_mismatch
from inlinebench.compare.tolerance import Comparison, Scale, compare, default_tolerance, measure_scale
from inlinebench.problem.forward import Output
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Tensors, Workload
from inlinebench.records.result import Check, Mismatch

ORACLE_SHARE = 0.125
"""Of the calls after the first, in secret."""
STATE_STRICTNESS = 0.1
"""States are compared at this share of the tolerance: a biased variance differs by one part in the batch size."""
FEW_ELEMENTS = 8
"""Outputs with no more than so many have no scale of their own in a single call."""
OPTIONAL_STATE = "num_batches_tracked"
NO_MEMORY_LEFT = "where its values differ was not looked into: the device had no memory left for that"


@dataclass(frozen=True)
class CallCheck:
    """What there is to check after a call: the inputs, the reference's states before and after, its output, what the
    candidate said of outputs that are no tensors, private copies of the inputs that the reference changes (which hold
    what it made of them), which set of buffers it used, and whether its states are still in theirs (a later call of a
    batch overwrites them). `handed_in` are copies of its outputs, where work that it left on the GPU might still change
    them."""

    inputs: Sequence[torch.Tensor]
    non_tensors: tuple[Any, ...]
    random_seed: int
    states_before: Tensors
    output: Output
    states_after: Tensors
    plain_outputs: tuple[str, ...]
    changed_inputs: Mapping[int, torch.Tensor]
    buffers: int = 0
    states_written: bool = True
    handed_in: Sequence[torch.Tensor] | None = None


class Checker:
    """`own_names` maps the reference's buffer names to the solution's; `chance` is the secret stream."""

    def __init__(
        self, workload: Workload, own_names: Mapping[str, str], tolerance: float | None, secret_random: random.Random
    ) -> None:
        self._workload, self._own_names = workload, own_names
        self._tolerance, self._secret_random = tolerance, secret_random
        self._oracle = workload.oracle()
        self._oracle_used = False
        self._shares: dict[int, tuple[float, float]] = {}
        self._largest: dict[int, float] = {}
        self._state_error: dict[str, float] = {}
        self._state_size: dict[str, float] = {}
        self._calls = 0
        self._worst: dict[str, float] = {}
        self._rounding_dominates = self._lacked_memory = False
        self._mismatch: Mismatch | None = None

    def check(self, call: CallCheck) -> str:
        """What is wrong with the call; empty if nothing is. Raises ProblemError if the reference changes its form."""
        if call.output.metas != self._workload.probed.outputs:
            raise ProblemError(f"{self._workload.problem.path}: the reference's outputs change shape from call to call")
        self._calls += 1
        self._mismatch = None
        return (self._check_outputs(call) or self._check_plain(call.output.non_tensors, call.plain_outputs)
                or self._check_changed_inputs(call) or (self._check_states(call) if call.states_written else ""))

    def mismatch(self, call: str, variant: object) -> Mismatch | None:
        """Where the values of the call just checked differ, under its name and its inputs' variant; None where they
        don't."""
        return None if self._mismatch is None else replace(self._mismatch, call=call, variant=str(variant))

    def summary(self, weights: str, notes: list[str]) -> Check:
        """The record over all calls so far."""
        tolerances = [self._tolerance_of(tensor.torch_dtype) for tensor in self._workload.sets[0].outputs]
        notes = list(notes)
        if self._rounding_dominates:
            notes.append("the allowance for the reference's own rounding exceeds the tolerance")
        if self._lacked_memory:
            notes.append(NO_MEMORY_LEFT)
        return Check(
            calls=self._calls,
            tolerance=max(tolerances, default=0.0),
            oracle="float64" if self._oracle_used else "reference",
            weights=weights,
            worst_error=self._worst.get("worst_error"),
            max_abs_error=self._worst.get("max_abs_error"),
            rel_l2_error=self._worst.get("rel_l2_error"),
            reference_rel_l2_error=self._worst.get("reference_rel_l2_error"),
            notes=tuple(notes),
        )

    def _check_outputs(self, call: CallCheck) -> str:
        exact = self._ask_oracle(call)
        several = len(call.output.tensors) > 1
        handed_in = self._workload.outputs(call.buffers) if call.handed_in is None else call.handed_in
        for index, (out, reference) in enumerate(zip(handed_in, call.output.tensors, strict=True)):
            oracle = exact.tensors[index] if exact and _fits(exact.tensors[index], reference.dtype) else None
            scale = self._scale(index, reference, oracle)
            tolerance = self._tolerance_of(reference.dtype)
            comparison = compare(out, reference, oracle, tolerance, scale)
            self._remember(comparison)
            if not comparison.passed:
                what = f"output {index}" if several else "output"
                self._look(what, out, reference, oracle, tolerance=tolerance, scale=scale)
                return (f"output {index}: " if several else "") + comparison.describe()
        return ""

    def _check_plain(self, expected: Sequence[Any], plain_outputs: Sequence[str]) -> str:
        if len(plain_outputs) != len(expected):
            return f"{len(plain_outputs)} plain outputs; the reference gives {len(expected)}"
        for value, text in zip(expected, plain_outputs, strict=True):
            if not self._matches(value, text):
                return f"a plain output is {text[:80]}; the reference gives {value!r}"
        return ""

    def _matches(self, expected: Any, text: str) -> bool:
        if not isinstance(expected, float):
            return text == repr(expected)
        try:
            got = float(text)
        except ValueError:
            return False
        tolerance = self._tolerance_of(torch.float32)
        return got == expected or abs(got - expected) <= 2 * tolerance * abs(expected) or text == repr(expected)

    def _check_changed_inputs(self, call: CallCheck) -> str:
        for index, expected in call.changed_inputs.items():
            got = self._workload.inputs(call.buffers)[index].to(expected.device)
            scale = measure_scale(expected, expected) if expected.is_floating_point() else Scale(0.0, 0.0)
            failure = self._check_state(f"input {index}, which the reference changes", got, expected, 1.0, scale)
            if failure:
                return failure
        return ""

    def _check_states(self, call: CallCheck) -> str:
        for name, expected in call.states_after.items():
            if name not in self._workload.states:
                continue  # the reference makes it in forward; nothing says that a solution does
            if name.endswith(OPTIONAL_STATE):
                continue
            if name not in self._own_names:
                if not torch.equal(expected, call.states_before[name]):
                    return f"the reference updates its buffer {name}; the solution has no buffer that matches it"
                continue
            scale = self._scale_of_state(name, expected)
            failure = self._check_state(f"buffer {name}", self._workload.state(name), expected, STATE_STRICTNESS, scale)
            if failure:
                return failure
        return ""

    def _scale_of_state(self, name: str, expected: torch.Tensor) -> Scale:
        """A state carries the rounding of earlier calls, so the largest that it was counts, as does the largest error.

        A running mean over inputs of both signs may come to next to nothing now, and was rounded when it was large.
        """
        if not expected.is_floating_point():
            return Scale(0.0, 0.0)
        size = max(measure_scale(expected, expected).oracle_rms, self._state_size.get(name, 0.0))
        self._state_size[name] = size
        return Scale(size, self._state_error.get(name, 0.0))

    def _check_state(
        self, what: str, got: torch.Tensor, expected: torch.Tensor, strictness: float, scale: Scale
    ) -> str:
        tolerance = self._tolerance_of(expected.dtype) * strictness
        comparison = compare(got, expected, None, tolerance, scale)
        if comparison.passed:
            return ""
        self._look(what, got, expected, None, tolerance=tolerance, scale=scale)
        return f"{what}: {comparison.describe()}"

    def _look(
        self, what: str, got: torch.Tensor, expected: torch.Tensor, oracle: torch.Tensor | None, *, tolerance: float,
        scale: Scale,
    ) -> None:
        """Finds out where and how a tensor that failed differs."""
        try:
            self._mismatch = find_mismatch(what, got, expected, oracle, tolerance=tolerance, scale=scale)
        except torch.OutOfMemoryError:
            self._lacked_memory = True  # what a failure looks like must not become another failure

    def _ask_oracle(self, call: CallCheck) -> Output | None:
        if self._oracle is None or (self._calls > 1 and self._secret_random.random() >= ORACLE_SHARE):
            return None
        exact = self._oracle.run(call.states_before, call.inputs, call.non_tensors, call.random_seed)
        if exact is not None:
            self._learn_state_errors(self._oracle.states(), call.states_after)
        self._oracle_used = self._oracle_used or exact is not None
        return exact

    def _learn_state_errors(self, exact: Tensors, found: Tensors) -> None:
        """How far the reference's own states are off after a call: a mean of values that cancel is mostly rounding."""
        for name, state in found.items():
            if name in exact and state.is_floating_point():
                error = measure_scale(exact[name], state).reference_error_rms
                self._state_error[name] = max(error, self._state_error.get(name, 0.0))

    def _scale(self, index: int, reference: torch.Tensor, oracle: torch.Tensor | None) -> Scale:
        """The scale of an output, from this call and, where it has next to no elements, from earlier ones as well.

        A single sum may happen to be next to zero, and says nothing then about the size of what was added up.
        """
        scale = self._scale_of_call(index, reference, oracle)
        if reference.numel() > FEW_ELEMENTS:
            return scale
        self._largest[index] = max(scale.oracle_rms, self._largest.get(index, 0.0))
        return replace(scale, oracle_rms=self._largest[index])

    def _scale_of_call(self, index: int, reference: torch.Tensor, oracle: torch.Tensor | None) -> Scale:
        """Without an oracle, the reference's error is taken in proportion to earlier ones."""
        if not (reference.is_floating_point() or reference.is_complex()):
            return Scale(0.0, 0.0)
        if oracle is None:
            return measure_scale(reference, reference).with_errors(self._shares.get(index, (0.0, 0.0)))
        scale = measure_scale(oracle, reference)
        known, found = self._shares.get(index, (0.0, 0.0)), scale.errors_of(measure_scale(reference, reference))
        self._shares[index] = max(found[0], known[0]), max(found[1], known[1])
        tolerance = self._tolerance_of(reference.dtype)
        if scale.allowance(tolerance) > tolerance * scale.oracle_rms:
            self._rounding_dominates = True
        return scale

    def _remember(self, comparison: Comparison) -> None:
        for name in ("worst_error", "max_abs_error", "rel_l2_error", "reference_rel_l2_error"):
            value = getattr(comparison, name)
            if value is not None and not math.isfinite(value):
                self._worst.pop(name, None)  # no number says how far off it is
            elif value is not None:
                self._worst[name] = max(value, self._worst.get(name, 0.0))

    def _tolerance_of(self, dtype: torch.dtype) -> float:
        own = default_tolerance(dtype)
        return own if self._tolerance is None or own == 0.0 else self._tolerance


def _fits(oracle: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether the reference's dtype can hold the oracle's finite values. Where it can't, the oracle has the bounds of
    another dtype in it (`nan_to_num`, `finfo`), and doesn't know what is right."""
    if not dtype.is_floating_point or oracle.numel() == 0:
        return True
    most = torch.finfo(dtype).max
    if float(torch.linalg.vector_norm(oracle, math.inf)) <= most:  # nearly always
        return True
    finite = oracle[torch.isfinite(oracle)]
    return finite.numel() == 0 or float(finite.abs().amax()) <= most
