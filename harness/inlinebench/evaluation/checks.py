"""Checks each call against the reference and the oracle, and summarizes the errors over all calls."""

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
"""The share of calls after the first that are also compared with the oracle, drawn in secret."""
STATE_STRICTNESS = 0.1
"""The share of the tolerance that applies to states. A biased variance differs by only one part in the batch size."""
FEW_ELEMENTS = 8
"""Outputs with at most this many elements take their scale from all calls so far."""
OPTIONAL_STATE = "num_batches_tracked"
"""A buffer of PyTorch's norm layers that a solution need not update."""
NO_MEMORY_LEFT = "no details of the mismatch: the device had too little memory left to locate the wrong values"


@dataclass(frozen=True)
class CallCheck:
    """Everything that is needed to check one call."""

    inputs: Sequence[torch.Tensor]
    """The tensor inputs of the reference's call, for the oracle."""
    non_tensors: tuple[Any, ...]
    """The non-tensor arguments of the call."""
    random_seed: int
    """The seed that was set before `forward`."""
    states_before: Tensors
    """The reference's buffers before its call."""
    output: Output
    """The reference's output."""
    states_after: Tensors
    """The reference's buffers after its call."""
    plain_outputs: tuple[str, ...]
    """The candidate's non-tensor outputs, as Python literals."""
    changed_inputs: Mapping[int, torch.Tensor]
    """The inputs that the reference changes in place, by index, with the values that it left there."""
    buffers: int = 0
    """The index of the set of buffers that holds the candidate's inputs and outputs."""
    states_written: bool = True
    """Whether the shared state buffers hold this call's states. A later call of a batch overwrites them."""
    handed_in: Sequence[torch.Tensor] | None = None
    """Copies of the candidate's outputs, in case work that it left on the GPU changes the buffers. None: read these."""


class Checker:
    """Checks the calls of one candidate.

    Args:
        workload: the problem at its shape, with the shared buffers.
        own_names: the solution's names of its buffers, by the reference's names.
        tolerance: replaces the default tolerance of each floating-point dtype, unless None.
        secret_random: draws the calls that are compared with the oracle.
    """

    def __init__(
        self, workload: Workload, own_names: Mapping[str, str], tolerance: float | None, secret_random: random.Random
    ) -> None:
        self._workload, self._own_names = workload, own_names
        self._tolerance, self._secret_random = tolerance, secret_random
        self._oracle = workload.oracle()
        self._oracle_used = False
        self._shares: dict[int, tuple[float, float]] = {}
        self._largest_rms: dict[int, float] = {}
        self._state_error: dict[str, float] = {}
        self._state_size: dict[str, float] = {}
        self._calls = 0
        self._worst: dict[str, float] = {}
        self._rounding_dominates = self._lacked_memory = False
        self._mismatch: Mismatch | None = None

    def check(self, call: CallCheck) -> str:
        """Returns what is wrong with the call, or "" if nothing is.

        Raises ProblemError if the shape, dtype or strides of a reference's output differ from those of the probe.
        """
        if call.output.metas != self._workload.probed.outputs:
            raise ProblemError(f"{self._workload.problem.path}: the reference's outputs change shape, dtype or strides "
                               "from call to call")
        self._calls += 1
        self._mismatch = None
        return (self._check_outputs(call) or self._check_plain(call.output.non_tensors, call.plain_outputs)
                or self._check_changed_inputs(call) or (self._check_states(call) if call.states_written else ""))

    def mismatch(self, call: str, variant: object) -> Mismatch | None:
        """Returns where and how the values of the last checked call differ, or None if they do not.

        `call` and `variant` name the call and the variant of its inputs in the record.
        """
        return None if self._mismatch is None else replace(self._mismatch, call=call, variant=str(variant))

    def summary(self, weights: str, notes: list[str]) -> Check:
        """Returns the record over all calls so far.

        `weights` says how the reference's weights were transferred; `notes` are added to the record.
        """
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
                self._find_mismatch(what, out, reference, oracle, tolerance=tolerance, scale=scale)
                return (f"output {index}: " if several else "") + comparison.describe()
        return ""

    def _check_plain(self, expected: Sequence[Any], plain_outputs: Sequence[str]) -> str:
        if len(plain_outputs) != len(expected):
            return f"{len(plain_outputs)} non-tensor outputs; the reference gives {len(expected)}"
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
                continue  # the reference creates it in forward, so a solution need not have it
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
        """Returns the scale of a state: its largest size and largest error over all calls so far.

        A state carries the rounding of earlier calls. A running mean over inputs of both signs, for example, can be
        near zero now, but was rounded when it was large.
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
        self._find_mismatch(what, got, expected, None, tolerance=tolerance, scale=scale)
        return f"{what}: {comparison.describe()}"

    def _find_mismatch(
        self, what: str, got: torch.Tensor, expected: torch.Tensor, oracle: torch.Tensor | None, *, tolerance: float,
        scale: Scale,
    ) -> None:
        """Finds where and how a tensor that failed differs, for the record."""
        try:
            self._mismatch = find_mismatch(what, got, expected, oracle, tolerance=tolerance, scale=scale)
        except torch.OutOfMemoryError:
            self._lacked_memory = True  # the verdict stays WRONG without the details

    def _ask_oracle(self, call: CallCheck) -> Output | None:
        if self._oracle is None or (self._calls > 1 and self._secret_random.random() >= ORACLE_SHARE):
            return None
        exact = self._oracle.run(call.states_before, call.inputs, call.non_tensors, call.random_seed)
        if exact is not None:
            self._learn_state_errors(self._oracle.states(), call.states_after)
        self._oracle_used = self._oracle_used or exact is not None
        return exact

    def _learn_state_errors(self, exact: Tensors, found: Tensors) -> None:
        """Remembers the errors of the reference's own states: a mean of values that cancel out is mostly rounding."""
        for name, state in found.items():
            if name in exact and state.is_floating_point():
                error = measure_scale(exact[name], state).reference_error_rms
                self._state_error[name] = max(error, self._state_error.get(name, 0.0))

    def _scale(self, index: int, reference: torch.Tensor, oracle: torch.Tensor | None) -> Scale:
        """Returns the scale of an output, from this call and, for few elements, also from earlier calls.

        A single sum can happen to be near zero, which says nothing about the size of its summands.
        """
        scale = self._scale_of_call(index, reference, oracle)
        if reference.numel() > FEW_ELEMENTS:
            return scale
        self._largest_rms[index] = max(scale.oracle_rms, self._largest_rms.get(index, 0.0))
        return replace(scale, oracle_rms=self._largest_rms[index])

    def _scale_of_call(self, index: int, reference: torch.Tensor, oracle: torch.Tensor | None) -> Scale:
        """Returns the scale of an output in this call. Without an oracle, the reference's error is estimated from the
        largest relative error of earlier calls."""
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
                self._worst.pop(name, None)  # JSON has no infinity, and a smaller number would be misleading
            elif value is not None:
                self._worst[name] = max(value, self._worst.get(name, 0.0))

    def _tolerance_of(self, dtype: torch.dtype) -> float:
        own = default_tolerance(dtype)
        return own if self._tolerance is None or own == 0.0 else self._tolerance


def _fits(oracle: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether the reference's dtype can represent all finite values of the oracle.

    If it cannot, the oracle contains the bounds of float64 (`nan_to_num`, `finfo`) and is not a valid oracle.
    """
    if not dtype.is_floating_point or oracle.numel() == 0:
        return True
    most = torch.finfo(dtype).max
    if float(torch.linalg.vector_norm(oracle, math.inf)) <= most:  # nearly always
        return True
    finite = oracle[torch.isfinite(oracle)]
    return finite.numel() == 0 or float(finite.abs().amax()) <= most
