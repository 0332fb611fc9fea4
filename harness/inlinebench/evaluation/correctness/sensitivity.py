"""Finds out how far a correct output may be from the oracle, by runs of the oracle on slightly changed values.

The rule is in `inlinebench.compare.tolerance`. This module measures what it needs for one call: the oracle's results,
their changes when inputs, weights and states change by no more than the tolerance, and the reference's own errors.
Nothing is carried from one call to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from inlinebench.compare.tolerance import (
    FACTOR,
    OWN_ERRORS,
    Limit,
    by_sensitivity,
    judge,
    perturbation_of,
    root_mean_square,
)
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.problem.forward import Tensors, is_sticky
from inlinebench.problem.perturbation import Perturbation, Values
from inlinebench.problem.reference_copy import Effects, ReferenceCopy
from inlinebench.problem.workload import Workload

RUNS = 12
"""How many perturbed runs are enough to pass. The standard deviation of 12 samples is far too small for some of
millions of elements, so they do not condemn any."""
MOST_RUNS = 64
"""How many perturbed runs an element that is beyond the limit gets before it is called wrong."""
CLEARLY_WRONG = 30.0
"""An element this many times beyond the limit after `2 * RUNS` runs is wrong. That its standard deviation is so much
larger than that of 12 samples has a probability below 1e-12."""
FEWEST_RUNS = 6
"""If fewer of the first runs succeed, since the reference raises for perturbed values, nothing is concluded."""


@dataclass
class Suspect:
    """A floating-point tensor of a call that is judged by the rule."""

    name: str
    """What it is among the effects of a call: see `tensors_of`."""
    got: torch.Tensor
    """The candidate's tensor."""
    reference: torch.Tensor
    """The reference's tensor."""
    tolerance: float
    """The tolerance that users see."""
    asked: bool = False
    """Whether `exact` is known."""
    exact: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    """The oracle's tensor, or the reference's if there is no oracle."""
    size: float = 0.0
    """The root mean square of `exact`."""
    squares: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    """Sums of squares of the elements' changes in perturbed runs, flat."""
    runs: int = 0
    """The number of these runs."""
    limit: Limit | None = None
    """The limit of each element. None: it could not be measured."""
    excused: int = 0
    """The number of elements in which the reference's own error allows more than the tolerance."""

    @property
    def perturbation(self) -> float:
        """The relative change of the values, `delta` of the rule."""
        return perturbation_of(self.reference.dtype, self.tolerance)

    def add(self, found: Mapping[str, torch.Tensor] | None) -> None:
        """Adds the squared changes of a run, if it has this tensor. Elements that are not finite in it add nothing."""
        result = None if found is None else found.get(self.name)
        if result is not None and result.shape == self.exact.shape:
            self.squares += _squared_distance(result, self.exact)
            self.runs += 1

    def limit_with(self, absolute: torch.Tensor) -> Limit:
        """Returns the limit with these values for `c * sigma` and the reference's error."""
        return by_sensitivity(self.reference.dtype, self.tolerance, absolute, self.size)

    @property
    def sigma(self) -> torch.Tensor:
        """The standard deviation of each element about the exact one, flat."""
        return (self.squares / self.runs).sqrt_()


class Sensitivity:
    """Runs the reference and the oracle of one workload again."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._oracle = workload.oracle()
        self._own: ReferenceCopy | None = None
        self._weights: dict[str, Values] | None = None

    @property
    def has_oracle(self) -> bool:
        """Whether there is an oracle in float64."""
        return self._oracle is not None

    @property
    def may_perturb(self) -> bool:
        """Whether the reference survives perturbed inputs."""
        return self._workload.probed.perturbable

    def exact(self, call: CallCheck, states: Tensors | None = None) -> Effects | None:
        """Returns what the oracle computes, or None without an oracle or without memory for it.

        `states` replaces the states before the call.
        """
        if self._oracle is None or not self._oracle.has_room(call.inputs):
            return None
        return self._oracle.run(
            call.states_before if states is None else states, call.inputs, call.non_tensors, call.random_seed)

    def measure(self, call: CallCheck, suspects: Sequence[Suspect], *, thorough: bool) -> None:
        """Sets the limits of suspects, and `exact`, `squares` and `runs`, as far as the runs are possible.

        With `thorough`, all of the first `RUNS` runs are made. Without it, they end as soon as all suspects pass.
        """
        if not self.may_perturb:
            return
        runs = self.runs(call)
        found = runs.exact() if runs.have_room_for(suspects) else None
        if found is None:
            return
        suspects = [each for each in suspects if each.name in found]
        for each in suspects:
            each.asked, each.exact = True, found[each.name]
            each.size = root_mean_square(each.exact)
            each.squares = torch.zeros(each.got.numel(), dtype=torch.float64, device=each.exact.device)
        for number in range(1, RUNS + 1):
            for size, group in _by_size(suspects).items():
                result = runs.perturbed(Perturbation(size, number))
                for each in group:
                    each.add(result)
            if not thorough and all(_passes(each, RUNS) for each in suspects):
                break
        suspects = [each for each in suspects if each.runs >= min(number, FEWEST_RUNS)]
        for each in suspects:
            each.limit = each.limit_with(FACTOR * each.sigma)
        failing = [each for each in suspects if not _passes(each, each.runs)]
        if failing:
            _condemn_or_pass(runs, failing)

    def runs(self, call: CallCheck) -> Runs:
        """Returns the runs for a call. None is made yet."""
        if self._own is None:
            self._own = self._workload.copy()
        if self._weights is None:
            self._weights = {name: Values(tensor) for name, tensor in self._own.weights().items()}
        return Runs(call, self._oracle, self._own, self._weights)


class Runs:
    """Runs of the oracle and the reference for one call. Without an oracle, the reference takes its place."""

    def __init__(
        self, call: CallCheck, oracle: ReferenceCopy | None, own: ReferenceCopy, weights: Mapping[str, Values]
    ) -> None:
        self._call, self._oracle, self._own = call, oracle, own
        self._inputs = [Values(tensor) for tensor in call.inputs]
        self._weights = weights
        self._states = {name: Values(tensor) for name, tensor in call.states_before.items()}

    def have_room_for(self, suspects: Sequence[Suspect]) -> bool:
        """Whether inputs in float64, and for each element the exact one, a perturbed one, a limit and sums fit."""
        results = 6 * sum(each.got.numel() for each in suspects)
        return (self._oracle or self._own).has_room([*self._call.inputs, *self._call.inputs], results)

    def exact(self) -> dict[str, torch.Tensor] | None:
        """Returns the results for the values as they are."""
        call, copy = self._call, self._oracle or self._own
        found = copy.run(call.states_before, call.inputs, call.non_tensors, call.random_seed)
        return None if found is None else tensors_of(found)

    def own(self) -> dict[str, torch.Tensor] | None:
        """Returns what the reference computes in its own dtypes."""
        call = self._call
        found = self._own.run(call.states_before, call.inputs, call.non_tensors, call.random_seed)
        return None if found is None else tensors_of(found)

    def perturbed(self, by: Perturbation) -> dict[str, torch.Tensor] | None:
        """Returns the results for perturbed values, or None if the reference raises for them."""
        return self._run(self._oracle or self._own, by)

    def pair(self, by: Perturbation) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]] | None:
        """Returns the results of the oracle and of the reference for the same perturbed values."""
        exact = self._run(self._oracle or self._own, by)
        own = exact if self._oracle is None else self._run(self._own, by)
        return None if exact is None or own is None else (exact, own)

    def _run(self, copy: ReferenceCopy, by: Perturbation) -> dict[str, torch.Tensor] | None:
        call, values = self._call, [*self._inputs, *self._weights.values(), *self._states.values()]
        changed = by.of(values)
        inputs, rest = changed[: len(self._inputs)], changed[len(self._inputs):]
        weights = dict(zip(self._weights, rest, strict=False))
        states = dict(zip(self._states, rest[len(weights):], strict=True))
        if copy is self._own:
            inputs = [new.to(old.dtype) for new, old in zip(inputs, call.inputs, strict=True)]
        try:
            found = copy.run(states, inputs, call.non_tensors, call.random_seed, weights)
        except Exception as error:  # the reference's own code, which may reject the perturbed values
            if is_sticky(error):
                raise
            return None
        return None if found is None else tensors_of(found)


def tensors_of(effects: Effects) -> dict[str, torch.Tensor]:
    """Returns all tensors that a call computes: "output N", "input N" and "buffer NAME".

    Buffers, and outputs that share memory with one, are copied, since the next run changes them.
    """
    buffers = {tensor.untyped_storage().data_ptr() for tensor in effects.states.values()}

    def kept(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if tensor.untyped_storage().data_ptr() in buffers else tensor

    return {**{f"output {index}": kept(tensor) for index, tensor in enumerate(effects.output.tensors)},
            **{f"input {index}": tensor for index, tensor in enumerate(effects.inputs)},
            **{f"buffer {name}": tensor.clone() for name, tensor in effects.states.items()}}


def _by_size(suspects: Iterable[Suspect]) -> dict[float, list[Suspect]]:
    """Groups suspects by the size of their perturbation, since those of one size share their runs."""
    groups: dict[float, list[Suspect]] = {}
    for each in suspects:
        groups.setdefault(each.perturbation, []).append(each)
    return groups


def _squared_distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns the squared distances of the elements, flat in float64. 0 where it is not finite."""
    distance = _flat(one).sub(_flat(other)).abs()
    return distance.square().nan_to_num_(0.0, 0.0, 0.0)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).reshape(-1)


def _passes(suspect: Suspect, runs: int) -> bool:
    """Whether all elements pass with the sums so far, as those of this many runs.

    Sums only grow, so a suspect that passes with them as sums of more runs than were made passes after those, too.
    """
    absolute = (suspect.squares / runs).sqrt_().mul_(FACTOR)
    limit = suspect.limit_with(absolute)
    return all(not bool(judged.bad.any()) for judged in judge(suspect.got, suspect.reference, suspect.exact, limit))


def _condemn_or_pass(runs: Runs, suspects: Sequence[Suspect]) -> None:
    """Makes further runs for the elements that are beyond the limit, until they pass or are wrong.

    Inputs change by the full `c * delta`, so that clamps and other kinks are crossed. The reference runs on the same
    inputs, so that its own error is known for each element.
    """
    found = {each.name: _Open(each) for each in suspects}
    for number in range(1, MOST_RUNS - RUNS + 1):
        left = [each for each in suspects if not found[each.name].done]
        for size, group in _by_size(left).items():
            results = runs.pair(Perturbation(FACTOR * size, RUNS + number, rounded=True))
            for each in group if results is not None else ():
                found[each.name].add(*(result.get(each.name) for result in results or ()))
        for elements in (found[each.name] for each in left):
            elements.done = elements.pass_already() or (number >= RUNS and elements.are_clearly_wrong())
    for elements in found.values():
        elements.set_limit()


class _Open:
    """The elements of a suspect that the first runs did not pass."""

    def __init__(self, suspect: Suspect) -> None:
        assert suspect.limit is not None and suspect.limit.absolute is not None
        self._suspect, self.done, self._runs = suspect, False, 0
        bad = [judged.bad.nonzero().flatten() + judged.begin
               for judged in judge(suspect.got, suspect.reference, suspect.exact, suspect.limit)]
        self._at = torch.cat(bad)
        self._got, self._reference, self._exact = (
            tensor.reshape(-1)[self._at] for tensor in (suspect.got, suspect.reference, suspect.exact))
        self._first = suspect.limit.absolute[self._at]
        self._reach = torch.zeros_like(self._first)
        self._own_errors = torch.zeros_like(self._first)  # their squares

    def add(self, exact: torch.Tensor | None, own: torch.Tensor | None) -> None:
        """Adds the changes of a run, and the reference's errors in it."""
        shape = self._suspect.exact.shape
        if exact is None or own is None or exact.shape != shape or own.shape != shape:
            return
        exact, own = (tensor.reshape(-1)[self._at] for tensor in (exact, own))
        self._reach += _squared_distance(exact, self._exact)
        self._own_errors = torch.maximum(self._own_errors, _squared_distance(own, exact))
        self._runs += 1

    def pass_already(self) -> bool:
        """Whether all elements pass, and would after any further runs."""
        return not bool((self._shares() > 1).any())

    def are_clearly_wrong(self) -> bool:
        """Whether an element is so wrong that further runs would not change that."""
        return bool((self._shares() > CLEARLY_WRONG).any())

    def set_limit(self) -> None:
        """Puts the limits of these elements into the suspect's."""
        limit, (reach, rounding) = self._suspect.limit, self._parts()
        assert limit is not None and limit.absolute is not None
        limit.absolute[self._at] = reach + rounding
        self._suspect.excused = int((rounding > reach).sum())

    def _parts(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns `c * sigma`, and the part of `a` that is the reference's error.

        Before `RUNS` runs, `c * sigma` is as if the runs that are missing had changed nothing.
        """
        reach = torch.maximum(self._first, (self._reach / max(self._runs, RUNS)).sqrt())
        return reach, OWN_ERRORS * self._own_errors.sqrt()

    def _shares(self) -> torch.Tensor:
        limit = self._suspect.limit_with(torch.add(*self._parts()))
        found = [judged.share for judged in judge(self._got, self._reference, self._exact, limit)]
        return torch.cat([share for share in found if share is not None])
