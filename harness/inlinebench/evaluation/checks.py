"""Checks each call against the reference and the oracle, and summarizes the errors over all calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from inlinebench.compare.tolerance import Comparison, measure_scale
from inlinebench.evaluation.compared import Compared, compared, tolerance_of
from inlinebench.evaluation.recomputing import FEW_ELEMENTS, CallCheck, Recomputing
from inlinebench.evaluation.states import StateChecks
from inlinebench.problem.forward import Output, Tensors
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Workload
from inlinebench.records.result import Check, Mismatch

NO_MEMORY_LEFT = "no details of the mismatch: the device had too little memory left to locate the wrong values"


class Checker:
    """Checks the calls of one candidate.

    Each call is judged by itself: no scale and no allowance is carried from one call to another. An output that matches
    the reference is right. Before an output is declared wrong, the oracle computes it from the same inputs.

    Args:
        workload: the problem at its shape, with the shared buffers.
        own_names: the solution's names of its buffers, by the reference's names.
        tolerance: replaces the default tolerance of each floating-point dtype, unless None.
    """

    def __init__(self, workload: Workload, own_names: Mapping[str, str], tolerance: float | None) -> None:
        self._workload, self._tolerance = workload, tolerance
        self._recomputing = Recomputing(workload)
        self._states = StateChecks(workload, own_names, self._recomputing)
        self._matched, self._failed = 0, False
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
        self._mismatch = None
        failure = ""
        if call.outputs_written:
            failure = (self._check_outputs(call) or self._check_plain(call.output.non_tensors, call.plain_outputs)
                       or self._check_changed_inputs(call))
        failure = failure or self._check_states(call)
        self._failed = self._failed or bool(failure)
        self._matched += call.outputs_written and not failure
        return failure

    def mismatch(self, call: str, variant: object) -> Mismatch | None:
        """Returns where and how the values of the last checked call differ, or None if they do not.

        `call` and `variant` name the call and the variant of its inputs in the record.
        """
        return None if self._mismatch is None else replace(self._mismatch, call=call, variant=str(variant))

    def summary(self, weights: str, notes: list[str]) -> Check:
        """Returns the record over all calls so far.

        `weights` says how the reference's weights were transferred; `notes` are added to the record.
        """
        tolerances = [tolerance_of(tensor.torch_dtype, self._tolerance) for tensor in self._workload.sets[0].outputs]
        notes = list(notes)
        if self._rounding_dominates:
            notes.append("the allowance for the reference's own rounding exceeds the tolerance")
        if self._lacked_memory:
            notes.append(NO_MEMORY_LEFT)
        return Check(
            calls=self._matched + self._failed,
            tolerance=max(tolerances, default=0.0),
            oracle="float64" if self._recomputing.asked else "reference",
            weights=weights,
            worst_error=self._worst.get("worst_error"),
            max_abs_error=self._worst.get("max_abs_error"),
            rel_l2_error=self._worst.get("rel_l2_error"),
            reference_rel_l2_error=self._worst.get("reference_rel_l2_error"),
            notes=tuple(notes),
        )

    def _check_outputs(self, call: CallCheck) -> str:
        several = len(call.output.tensors) > 1
        handed_in = self._workload.outputs(call.buffers) if call.handed_in is None else call.handed_in
        for index, (out, reference) in enumerate(zip(handed_in, call.output.tensors, strict=True)):
            found = self._compare_output(call, index, out, reference, f"output {index}" if several else "output")
            self._remember(found.comparison)
            if not found.passed:
                self._find_mismatch(found)
                return (f"output {index}: " if several else "") + found.describe()
        return ""

    def _compare_output(
        self, call: CallCheck, index: int, out: torch.Tensor, reference: torch.Tensor, what: str
    ) -> Compared:
        enlarged = call.inputs_without_large is not None
        found = compared(what, out, reference, tolerance=self._tolerance, of_smaller_half=enlarged)
        # The first call is compared with the oracle in any case, so that the record shows the reference's own error.
        exact = self._recomputing.exact(call) if not found.passed or self._matched == 0 else None
        oracle = exact[0].tensors[index] if exact is not None else None
        if oracle is not None and _fits(oracle, reference.dtype):
            found = compared(what, out, reference, oracle, tolerance=self._tolerance, of_smaller_half=enlarged)
            if found.scale.allowance(found.tolerance) > found.tolerance * found.scale.oracle_rms:
                self._rounding_dominates = True
        if found.passed or found.tolerance == 0:
            return found
        if enlarged:
            found = self._compare_where_reached(call, index, found)
        if not found.passed and found.oracle is not None and reference.numel() <= FEW_ELEMENTS:
            typical = self._recomputing.typical_scale(call, lambda output, _: output.tensors[index])
            found = compared(
                what, out, reference, found.oracle, tolerance=self._tolerance, scale=typical or found.scale)
        return found

    def _compare_where_reached(self, call: CallCheck, index: int, found: Compared) -> Compared:
        """Compares an output of a call with a few large values: each element with those like it.

        Elements that the large values reach are compared at the scale of the output, all others at the scale that the
        output has without large values. Both kinds have their own allowance for the reference's rounding. If a kind has
        few elements, their rounding in this call says too little, and the typical one is used.
        """
        whole = compared(found.what, found.got, found.expected, found.oracle, tolerance=self._tolerance)
        plain = self._recomputing.without_large(call)
        if plain is None:
            return whole
        without, exact = plain.tensors[index], found.expected if found.oracle is None else found.oracle
        reached = (without != found.expected) & ~(torch.isnan(without) & torch.isnan(found.expected))
        parts = []
        for kind, size in ((reached, whole.scale.oracle_rms), (~reached, measure_scale(without, without).oracle_rms)):
            scale = measure_scale(exact[kind], found.expected[kind])
            if found.oracle is not None and 0 < int(kind.sum()) <= FEW_ELEMENTS:
                scale = self._recomputing.typical_scale(call, partial(_elements, index, kind)) or scale
            got = torch.where(kind, found.got, found.expected)
            parts.append(compared(found.what, got, found.expected, found.oracle, tolerance=self._tolerance,
                                  scale=replace(scale, oracle_rms=size)))
        return max(parts, key=lambda part: part.comparison.worst_error)

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
        tolerance = tolerance_of(torch.float32, self._tolerance)
        return got == expected or abs(got - expected) <= 2 * tolerance * abs(expected) or text == repr(expected)

    def _check_changed_inputs(self, call: CallCheck) -> str:
        for index, expected in call.changed_inputs.items():
            got = self._workload.inputs(call.buffers)[index].to(expected.device)
            what = f"input {index}, which the reference changes"
            found = compared(what, got, expected, tolerance=self._tolerance)
            if not found.passed:
                self._find_mismatch(found)
                return f"{what}: {found.describe()}"
        return ""

    def _check_states(self, call: CallCheck) -> str:
        found = self._states.check(call, self._tolerance)
        if isinstance(found, Compared):
            self._find_mismatch(found)
            return f"{found.what}: {found.describe()}"
        return found or ""

    def _find_mismatch(self, found: Compared) -> None:
        """Finds where and how a tensor that failed differs, for the record."""
        try:
            self._mismatch = found.mismatch()
        except torch.OutOfMemoryError:
            self._lacked_memory = True  # the verdict stays WRONG without the details

    def _remember(self, comparison: Comparison) -> None:
        for name in ("worst_error", "max_abs_error", "rel_l2_error", "reference_rel_l2_error"):
            value = getattr(comparison, name)
            if value is not None and not math.isfinite(value):
                self._worst.pop(name, None)  # JSON has no infinity, and a smaller number would be misleading
            elif value is not None:
                self._worst[name] = max(value, self._worst.get(name, 0.0))


def _elements(index: int, kind: torch.Tensor, output: Output, _: Tensors) -> torch.Tensor:
    """Returns the elements of one kind from an output tensor."""
    return output.tensors[index][kind]


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
