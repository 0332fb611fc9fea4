"""Checks each call against the reference and the oracle, and summarizes the errors over all calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.compare.accuracy import accuracy
from inlinebench.compare.tolerance import FACTOR, Comparison, root_mean_square
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.choices import Choices
from inlinebench.evaluation.correctness.compared import Compared, compared, tolerance_of
from inlinebench.evaluation.correctness.sensitivity import Sensitivity, Suspect
from inlinebench.evaluation.correctness.states import STRICTNESS, StateChecks
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Workload
from inlinebench.results.result import Accuracy, Check, Mismatch

NO_MEMORY_LEFT = "no details of the mismatch: the device did not have enough memory to locate the wrong values"
BY_SIZE_ONLY = ("some tensors were compared only by the size of the output: the reference does not run on perturbed "
                "inputs, or the device does not have enough memory")
ROUNDING = "the reference's own rounding exceeds the tolerance in some elements, where it is the limit instead"
SENSITIVE = 0.5
"""If `c * sigma` is more than this share of an output's size, as root mean squares, the result says so."""


MOST_SENSITIVE = 2
"""The most tensors that are named for it, the most sensitive first. A model may have a hundred gradients."""


@dataclass(frozen=True, order=True)
class Sensitive:
    """How sensitive a tensor is."""

    change: float
    """The share of its size by which it changes."""
    perturbation: float
    """The share by which the inputs were changed for it."""


def sensitive_notes(found: Mapping[str, Sensitive]) -> list[str]:
    """Returns a remark on each of the most sensitive tensors, and one on how many others there are."""
    ranked = sorted(found.items(), key=lambda item: (item[1].change, item[0]), reverse=True)
    notes = [f"{what} is sensitive: changing the inputs by {each.perturbation:.1e} changes it by {each.change:.1%} of "
             "its size" for what, each in ranked[:MOST_SENSITIVE]]
    others = len(ranked) - MOST_SENSITIVE
    return [*notes, *([f"{others} other outputs or gradients are sensitive as well"] if others > 0 else [])]


@dataclass(frozen=True, eq=False)
class _Item:
    """A tensor of a call that is compared."""

    name: str
    """Its name among the effects of a call, such as "output 0"."""
    what: str
    """What it is, for the record."""
    prefix: str
    """What the reason begins with."""
    got: torch.Tensor
    """The candidate's tensor."""
    expected: torch.Tensor
    """The reference's tensor."""
    tolerance: float
    """The tolerance that users see, times the strictness for this kind of tensor."""

    @property
    def is_inexact(self) -> bool:
        """Whether it has floating-point or complex elements."""
        return self.expected.is_floating_point() or self.expected.is_complex()


class Checker:
    """Checks the calls of one candidate.

    Each call is judged by itself. Most outputs are compared with the reference by the output's size. Those that are
    beyond that bound, and all of the calls that are marked as thorough, are judged by the rule in
    `inlinebench.compare.tolerance`.

    Args:
        workload: the problem at its shape, with the shared buffers.
        own_names: the solution's names of its buffers, by the reference's names.
        tolerance: replaces the default tolerance of each floating-point dtype, unless None.
        sensitivity: runs the reference and the oracle again. None: of its own.
    """

    def __init__(
        self, workload: Workload, own_names: Mapping[str, str], tolerance: float | None,
        sensitivity: Sensitivity | None = None,
    ) -> None:
        self._workload, self._tolerance = workload, tolerance
        self._sensitivity = sensitivity or Sensitivity(workload)
        self._choices = Choices(self._sensitivity)
        self._states = StateChecks(workload, own_names, self._sensitivity)
        self._matched, self._failed, self._asked = 0, False, False
        self._worst: dict[str, float] = {}
        self._accuracy: tuple[Accuracy, ...] = ()
        self._notes: set[str] = set()
        self._sensitive: dict[str, Sensitive] = {}
        self._differs: Compared | None = None

    def check(self, call: CallCheck) -> str:
        """Returns what is wrong with the call, or "" if nothing is.

        Raises ProblemError if the shape, dtype or strides of a reference's output differ from those of the probe.
        """
        if call.output.metas != self._workload.probed.outputs:
            raise ProblemError(f"{self._workload.problem.path}: the reference's outputs change shape, dtype or strides "
                               "from call to call")
        self._differs = None
        self._states.add(call)
        failure = self._check_tensors(call)
        if not failure and call.outputs_written:
            failure = self._check_plain(call.output.non_tensors, call.plain_outputs)
        failure = failure or self._states.missing(call)
        if call.states_written:
            self._states.accept(call)
        self._failed = self._failed or bool(failure)
        self._matched += call.outputs_written and not failure
        return failure

    def release(self) -> None:
        """Frees what the next checks make again."""
        self._differs = None
        self._sensitivity.release()

    def mismatch(self, call: str, variant: object) -> Mismatch | None:
        """Returns where and how the values of the last checked call differ, or None if they do not.

        `call` and `variant` name the call and the variant of its inputs in the record.
        """
        try:
            found = None if self._differs is None else self._differs.mismatch()
        except torch.OutOfMemoryError:
            self._notes.add(NO_MEMORY_LEFT)  # the verdict stays WRONG without the details
            return None
        return None if found is None else replace(found, call=call, variant=str(variant))

    def summary(self, weights: str, notes: list[str]) -> Check:
        """Returns the record over all calls so far.

        `weights` says how the reference's weights were transferred; `notes` are added to the record.
        """
        tolerances = [tolerance_of(tensor.torch_dtype, self._tolerance) for tensor in self._workload.sets[0].outputs]
        return Check(
            calls=self._matched + self._failed,
            tolerance=max(tolerances, default=0.0),
            oracle="float64" if self._asked and self._sensitivity.has_oracle else "reference",
            weights=weights,
            worst_error=self._worst.get("worst_error"),
            max_abs_error=self._worst.get("max_abs_error"),
            rel_l2_error=self._worst.get("rel_l2_error"),
            reference_rel_l2_error=self._worst.get("reference_rel_l2_error"),
            accuracy=self._accuracy,
            notes=(*notes, *sorted(self._notes), *sensitive_notes(self._sensitive)),
        )

    def _items(self, call: CallCheck) -> Iterator[_Item]:
        """Yields the tensors of a call to compare: outputs, inputs that the reference changes, and states."""
        outputs = call.output.tensors if call.outputs_written else ()
        names = self._workload.probed.output_names
        for index, (expected, got) in enumerate(zip(outputs, call.received.outputs, strict=False)):
            what = names[index]
            yield self._item(f"output {index}", what, got, expected, f"{what}: " if len(outputs) > 1 else "")
        for index, expected in call.changed_inputs.items() if call.outputs_written else ():
            got = call.received.inputs[index]
            yield self._item(f"input {index}", f"input {index}, which the reference changes", got, expected)
        for name, expected in self._states.expected(call).items():
            yield self._item(f"buffer {name}", f"buffer {name}", call.received.states[name], expected)

    def _item(
        self, name: str, what: str, got: torch.Tensor, expected: torch.Tensor, prefix: str | None = None
    ) -> _Item:
        strictness = STRICTNESS if name.startswith("buffer") else 1.0
        tolerance = strictness * tolerance_of(expected.dtype, self._tolerance)
        return _Item(name, what, f"{what}: " if prefix is None else prefix, got, expected, tolerance)

    def _check_tensors(self, call: CallCheck) -> str:
        """Returns which tensor of the call is wrong, and how, or "" if none is."""
        items = list(self._items(call))
        found = {item.name: compared(item.what, item.got, item.expected, tolerance=item.tolerance)
                 for item in items if not (call.thorough and item.is_inexact)}
        found |= self._judged(
            call, {item: found.get(item.name) for item in items if call.thorough or not found[item.name].passed})
        for item in items:
            result = found[item.name]
            if not result.passed and item.name.startswith("buffer"):
                result = self._states.from_own_states(item.name.removeprefix("buffer "), result)
            if item.name.startswith("output"):
                self._remember(result.comparison)
            if not result.passed:
                self._differs = result
                return item.prefix + result.describe()
        return ""

    def _judged(self, call: CallCheck, items: Mapping[_Item, Compared | None]) -> dict[str, Compared]:
        """Compares tensors by the rule, and returns the results by name. `items` has those by size, if known."""
        suspects = {item.name: Suspect(item.name, item.got, item.expected, item.tolerance,
                                       None if by_size is None else by_size.limit)
                    for item, by_size in items.items() if item.is_inexact}
        if suspects:
            self._sensitivity.measure(call, list(suspects.values()), sample=call.thorough and not self._accuracy)
        judged = {}
        for item in items:
            suspect = suspects.get(item.name)
            if suspect is None:
                judged[item.name] = self._choices.compared(call, item.name, item.what, item.got, item.expected)
                continue
            self._asked = self._asked or suspect.exact is not None
            if suspect.limit is None:
                self._notes.add(BY_SIZE_ONLY)
            oracle = suspect.exact if self._sensitivity.has_oracle else None
            if oracle is not None and suspect.limit is not None and suspect.comparison is not None:
                judged[item.name] = Compared(
                    item.what, item.got, item.expected, oracle, suspect.limit, suspect.comparison)
            else:
                judged[item.name] = compared(
                    item.what, item.got, item.expected, oracle, tolerance=item.tolerance, limit=suspect.limit)
            self._note(item, suspect)
        if call.thorough and not self._accuracy:
            self._accuracy = tuple(
                accuracy(item.what, each.got, each.reference, each.exact, at=each.sample.at, sigma=each.sample.sigma)
                for item in items if (each := suspects.get(item.name)) is not None
                and each.exact is not None and each.sample is not None and item.name.startswith("output"))
        return judged

    def _note(self, item: _Item, suspect: Suspect) -> None:
        """Adds notes on what limits the comparison of a tensor."""
        if suspect.excused:
            self._notes.add(ROUNDING)
        elif suspect.sample is not None and suspect.exact is not None:
            size = root_mean_square(suspect.exact.reshape(-1)[suspect.sample.at])
            change = root_mean_square(suspect.sample.sigma)
            if FACTOR * change > SENSITIVE * size > 0:
                found = Sensitive(change / size, suspect.perturbation)
                self._sensitive[item.what] = max(found, self._sensitive.get(item.what, found))

    def _check_plain(self, expected: Sequence[Any], plain_outputs: Sequence[str]) -> str:
        if len(plain_outputs) != len(expected):
            return f"{len(plain_outputs)} non-tensor outputs; the reference returns {len(expected)}"
        for value, text in zip(expected, plain_outputs, strict=True):
            if not self._matches(value, text):
                return f"a plain output is {text[:80]}; the reference returns {value!r}"
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

    def _remember(self, comparison: Comparison) -> None:
        for name in ("worst_error", "max_abs_error", "rel_l2_error", "reference_rel_l2_error"):
            value = getattr(comparison, name)
            if value is not None and not math.isfinite(value):
                self._worst.pop(name, None)  # JSON has no infinity, and a smaller number would be misleading
            elif value is not None:
                self._worst[name] = max(value, self._worst.get(name, 0.0))
