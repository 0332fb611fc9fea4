"""Finds out how far a correct output may be from the oracle, by runs of the oracle on slightly changed values.

The rule is in `inlinebench.compare.tolerance`. This module measures what it needs for one call: the oracle's results,
their changes when inputs, weights and states change by no more than the tolerance, and the reference's own errors.
Nothing is carried from one call to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from inlinebench.compare.tolerance import (
    FACTOR,
    OWN_ERRORS,
    Comparison,
    Limit,
    by_sensitivity,
    compare_and_find,
    judge,
    perturbation_of,
    root_mean_square,
)
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.runs import Copies, Pair, Runs
from inlinebench.problem.forward import Tensors
from inlinebench.problem.perturbation import Perturbation
from inlinebench.problem.reference_copy import Effects
from inlinebench.problem.workload import Workload

RUNS = 12
"""How many perturbed runs are enough to pass. The standard deviation of 12 samples is far too small for some of
millions of elements, so they do not condemn any."""
MOST_RUNS = 64
"""How many perturbed runs an element that is beyond the limit gets before it is called wrong."""
WIDE = 2.0**-6
"""The relative change of values for which the reference's own error is measured as well. Changes by the tolerance can
be too small to change a rounding: `1 + erf(x)` in float32 near -1 keeps its value, and with it its error."""
SAMPLE = 1 << 20
"""About how many elements of a tensor are in a sample."""
FEWEST_RUNS = 6
"""If fewer of the first runs succeed, since the reference raises for perturbed values, nothing is concluded. As many
are made for a sample, whose elements are only reported."""


def clearly_wrong(samples: int) -> float:
    """Returns how many times beyond the limit an element is wrong, whatever further runs would show.

    The variance of `n` samples of a normal distribution is less than `1 / t**2` of the true one with a probability of
    at most `(e / t**2) ** (n / 2)` (Chernoff's bound for the chi-squared distribution). For the returned `t` that is
    1e-15: 29 after 12 samples, 11 after 18, 4 after 38. (`_parts` counts pairs of runs that are missing out of the
    first `RUNS`, which makes it 1e-14 at most.)
    """
    return math.exp(0.5 - math.log(1e-15) / samples)


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
    bound: Limit | None = None
    """A bound within which elements pass in any case. None: all elements are judged by the rule."""
    exact: torch.Tensor | None = None
    """The oracle's tensor, or the reference's if there is no oracle. None: not known."""
    limit: Limit | None = None
    """The limit of each element. None: it could not be measured."""
    comparison: Comparison | None = None
    """The result of the comparison with this limit, if it is known already."""
    excused: bool = False
    """Whether the reference's own error allows more than the tolerance in some elements."""
    sample: PerturbedSample | None = None
    """Some of the elements, with their standard deviations, if these were asked for."""

    @property
    def perturbation(self) -> float:
        """The relative change of the values, `delta` of the rule."""
        return perturbation_of(self.reference.dtype, self.tolerance)


@dataclass(frozen=True)
class PerturbedSample:
    """Evenly spaced elements of a tensor."""

    at: torch.Tensor
    """Their flat indices."""
    sigma: torch.Tensor
    """Their standard deviations about the oracle's values under perturbations, in float64."""


class Sensitivity:
    """Runs the reference and the oracle of one workload again."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._copies = Copies(workload)

    @property
    def has_oracle(self) -> bool:
        """Whether there is an oracle in float64."""
        return self._workload.probed.float64

    def release(self) -> None:
        """Frees the oracle and the reference, which the next runs make again."""
        self._copies = Copies(self._workload)

    @property
    def may_perturb(self) -> bool:
        """Whether the reference survives perturbed inputs."""
        return self._workload.probed.perturbable

    def exact(self, call: CallCheck, states: Tensors | None = None) -> Effects | None:
        """Returns what the oracle computes, or None without an oracle or without memory for it.

        `states` replaces the states before the call.
        """
        oracle = self._copies.oracle
        if oracle is None or not oracle.has_room(call.inputs):
            return None
        return self._copies.compute(oracle, call, call.states_before if states is None else states)

    def measure(
        self, call: CallCheck, suspects: Sequence[Suspect], *, sample: bool = False, everywhere: bool = False
    ) -> None:
        """Sets `exact` and `limit` of suspects, if the runs succeed, and `sample` if that is asked for.

        With `everywhere`, the limit is that of the first `RUNS` runs in all elements. Without it, only elements that
        need their sensitivity to pass have it in their limit. Sets `comparison` if no element does.
        """
        if not self.may_perturb:
            return
        runs = self.runs(call)
        found = runs.exact() if runs.have_room_for([each.got for each in suspects]) else None
        if found is None:
            return
        measured = []
        for each in suspects:
            each.exact = found.get(each.name)
            if each.exact is not None and each.exact.shape == each.reference.shape:
                measured.append(_Measured(each, each.exact, sample=sample, everywhere=everywhere))
        _perturb(runs, measured)
        for elements in measured:
            elements.finish()

    def runs(self, call: CallCheck) -> Runs:
        """Returns the runs for a call. None is made yet."""
        return Runs(call, self._copies)


def _perturb(runs: Runs, measured: Sequence[_Measured]) -> None:
    """Makes perturbed runs, as many as are needed to pass all elements or to call some wrong.

    In further runs, inputs change by the full `c * delta`, so that clamps and other kinks are crossed, or by `delta`
    where the reference raises or is not finite for the full change. The reference runs on the same inputs, so that its
    own error is known for each element. Every other of these runs changes inputs by `WIDE`, for this error alone.
    """
    for number in range(1, RUNS + 1):
        measured = [each for each in measured if each.needs_more]
        for size, group in _by_size(measured).items():
            found = runs.perturbed(Perturbation(size, number))
            for each in group:
                each.add(found)
    for number in range(RUNS + 1, MOST_RUNS + 1):
        measured = [each for each in measured if each.needs_further(number)]
        for size, group in _by_size(measured).items():
            if number % 2 == 0 and FACTOR * size < WIDE:
                pair = runs.pair(Perturbation(WIDE, number, rounded=True))
                for each in group:
                    each.add_own_errors(pair)
                continue
            left = group
            for factor in (FACTOR, 1.0):
                pair = runs.pair(Perturbation(factor * size, number, rounded=True)) if left else None
                left = [each for each in left if not each.add_pair(pair, FACTOR / factor)]


def _by_size(measured: Iterable[_Measured]) -> dict[float, list[_Measured]]:
    """Groups tensors by the size of their perturbation, since those of one size share their runs."""
    groups: dict[float, list[_Measured]] = {}
    for each in measured:
        groups.setdefault(each.suspect.perturbation, []).append(each)
    return groups


def _squared_distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns the squared distances of the elements in float64. 0 where it is not finite."""
    kind = torch.complex128 if one.is_complex() else torch.float64
    return one.to(kind).sub(other.to(kind)).abs().square().nan_to_num_(0.0, 0.0, 0.0)


class _Measured:
    """The elements of a suspect that are beyond what the rule allows without any sensitivity, and a sample."""

    def __init__(self, suspect: Suspect, exact: torch.Tensor, *, sample: bool, everywhere: bool) -> None:
        self.suspect, self._exact = suspect, exact
        self._size = root_mean_square(exact)
        self._certain_runs = RUNS if everywhere else FEWEST_RUNS if sample else 0
        self._comparison, self._at = compare_and_find(suspect.got, suspect.reference, exact, self._limit(None))
        if everywhere:
            self._at = torch.arange(exact.numel(), device=exact.device)
        every = max(1, exact.numel() // SAMPLE)
        self._sampled = torch.arange(0, exact.numel(), every, device=exact.device) if sample else None
        self._tracked = self._at if self._sampled is None else torch.cat([self._at, self._sampled])
        self._got, self._reference = (_take(tensor, self._at) for tensor in (suspect.got, suspect.reference))
        self._exact_at = _take(exact, self._tracked)
        self._squares = torch.zeros(self._tracked.numel(), dtype=torch.float64, device=exact.device)
        self._reach, self._own_errors = (torch.zeros_like(self._squares[: self._at.numel()]) for _ in range(2))
        self._runs = self._pairs = 0
        self._worst_at = torch.zeros(1, dtype=torch.int64, device=exact.device)

    @property
    def needs_more(self) -> bool:
        """Whether to make another of the first `RUNS` runs."""
        return self._runs < self._certain_runs or not self._pass()

    def needs_further(self, number: int) -> bool:
        """Whether to make a pair of runs with this number, out of `MOST_RUNS`."""
        if self._runs < FEWEST_RUNS or self._pass():
            return False
        beyond = clearly_wrong(self._runs + self._pairs)
        return number <= 2 * RUNS or self._worst(beyond) <= beyond

    def add(self, found: Mapping[str, torch.Tensor] | None) -> None:
        """Adds the changes of a run, if it has this tensor. Elements that are not finite in it add nothing."""
        result = None if found is None else found.get(self.suspect.name)
        if result is not None and result.shape == self._exact.shape:
            self._squares += _squared_distance(_take(result, self._tracked), self._exact_at)
            self._runs += 1

    def add_pair(self, found: Pair | None, factor: float) -> bool:
        """Adds the changes of a run of the oracle, times `factor`, and the reference's errors in it.

        Returns False, and adds nothing, if there is no result or it is not finite where the exact one is.
        """
        pair = self._pair_of(found)
        before = self._exact_at[: self._at.numel()]
        if pair is None or bool((torch.isfinite(before) & ~torch.isfinite(pair[0])).any()):
            return False
        exact, own = pair
        self._reach += factor * factor * _squared_distance(exact, before)
        self._own_errors = torch.maximum(self._own_errors, _squared_distance(own, exact))
        self._pairs += 1
        return True

    def add_own_errors(self, found: Pair | None) -> None:
        """Adds the reference's errors in a run whose values changed by `WIDE`.

        Those of elements that more than doubled do not count, since larger results have larger errors.
        """
        pair = self._pair_of(found)
        if pair is not None:
            exact, own = pair
            errors = _squared_distance(own, exact)
            errors[exact.abs() > 2 * self._exact_at[: self._at.numel()].abs()] = 0.0
            self._own_errors = torch.maximum(self._own_errors, errors)

    def _pair_of(self, found: Pair | None) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Returns the elements of this tensor out of the results of the oracle and the reference."""
        exact, own = (None, None) if found is None else (each.get(self.suspect.name) for each in found)
        if exact is None or own is None or not exact.shape == own.shape == self._exact.shape:
            return None
        return _take(exact, self._at), _take(own, self._at)

    def finish(self) -> None:
        """Sets the suspect's limit and sample, if enough runs succeeded."""
        if self._runs < FEWEST_RUNS and (self._certain_runs or not self._pass()):
            return
        reach, rounding = self._parts(least_runs=1)
        absolute = None
        if self._at.numel():
            absolute = torch.zeros(self._exact.numel(), dtype=torch.float64, device=self._exact.device)
            absolute[self._at] = reach + rounding
        self.suspect.limit = self._limit(absolute)
        self.suspect.comparison = self._comparison if absolute is None else None
        self.suspect.excused = bool((rounding > reach).any())
        if self._sampled is not None:
            sigma = (self._squares[self._at.numel():] / self._runs).sqrt()
            self.suspect.sample = PerturbedSample(self._sampled, sigma)

    def _limit(self, absolute: torch.Tensor | None) -> Limit:
        suspect = self.suspect
        limit = by_sensitivity(suspect.reference.dtype, suspect.tolerance, absolute, self._size)
        return replace(limit, bound=suspect.bound)

    def _parts(
        self, least_runs: int, where: slice | torch.Tensor = slice(None)
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns `c * sigma`, and the part of `a` that is the reference's error, of the elements at `where`.

        If there were fewer than `least_runs`, `c * sigma` is as if the runs that are missing had changed nothing.
        """
        sigma = (self._squares[: self._at.numel()][where] / max(self._runs, least_runs)).sqrt()
        reach = (self._reach[where] / max(self._pairs, RUNS)).sqrt()
        return torch.maximum(FACTOR * sigma, reach), OWN_ERRORS * self._own_errors[where].sqrt()

    def _pass(self) -> bool:
        """Whether all elements pass, and would after any further runs, since these only add to the sums."""
        return self._worst(1.0) <= 1

    def _worst(self, beyond: float) -> float:
        """Returns the largest error as a share of its limit, or 0 if there are no elements.

        If the element that had it the last time is still beyond `beyond`, only that one is looked at: of a wrong
        output with millions of such elements, one is enough.
        """
        if not self._at.numel():
            return 0.0
        share = float(self._shares(self._worst_at))
        if share <= beyond:
            shares = self._shares(slice(None))
            self._worst_at = shares.argmax().reshape(1)
            share = float(shares[self._worst_at])
        return share

    def _shares(self, where: slice | torch.Tensor) -> torch.Tensor:
        limit = by_sensitivity(self.suspect.reference.dtype, self.suspect.tolerance,
                               torch.add(*self._parts(RUNS, where)), self._size)
        exact = self._exact_at[: self._at.numel()][where]
        found = [judged.share for judged in judge(self._got[where], self._reference[where], exact, limit)]
        return torch.cat([share for share in found if share is not None])


def _take(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1)[at]
