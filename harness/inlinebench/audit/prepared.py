"""A problem that is prepared for an audit, and calls of its reference that answers are compared with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from inlinebench.compare.tolerance import OWN_ERRORS, Limit, by_size, compare
from inlinebench.devices.registry import of
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.choices import Choices
from inlinebench.evaluation.correctness.compared import tolerance_of
from inlinebench.evaluation.correctness.runs import tensors_of
from inlinebench.evaluation.correctness.sensitivity import RUNS, Sensitivity, Suspect, clearly_wrong
from inlinebench.evaluation.correctness.states import OPTIONAL, STRICTNESS
from inlinebench.messages import ProblemAt
from inlinebench.problem.forward import Tensors, is_sticky
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload, snapshot

PLAIN_CALLS = 2
"""How many calls have inputs as drawn. Each variant has one call."""
FEW = 0.01
"""If more than this share of an output's elements are wrong, they are not examined further."""
KEPT_SHARE = 0.25
"""The largest share of the free memory for calls that are kept for the next check. Others are made again."""
NOT_EXACT = 2.0
"""The factor of the tolerance of numbers that `forward` returns, as the judge has it."""


@dataclass(frozen=True)
class Expected:
    """A tensor that the reference computes in a call, and how far a correct one may be from it."""

    own: torch.Tensor
    """The reference's tensor."""
    exact: torch.Tensor | None
    """The oracle's tensor. None without an oracle, and for integers and booleans."""
    tolerance: float
    """The tolerance that users see. 0 for integers and booleans."""
    limit: Limit | None
    """The limit of the rule. None for integers and booleans."""

    def share(self, got: torch.Tensor) -> float:
        """Returns the largest error of a tensor as a share of its limit: 0 or infinity for integers and booleans."""
        if got.shape != self.own.shape:
            return math.inf
        got = got.to(self.own.dtype)
        if self.limit is None:
            return 0.0 if torch.equal(got, self.own) else math.inf
        return compare(got, self.own, self.exact, self.limit).worst_error / (self.tolerance or 1.0)

    def failing(self, got: torch.Tensor) -> float:
        """Returns the share of elements that are beyond the limit, with the reference's own error allowed for."""
        limit, exact = self.limit, self.exact
        if limit is None or limit.absolute is None or exact is None or not got.numel():
            return 0.0
        error = (self.own - exact).abs()
        error = error[torch.isfinite(error)]
        own = float(torch.linalg.vector_norm(error.double())) / math.sqrt(max(1, error.numel()))
        found = compare(got, self.own, exact, replace(limit, absolute=limit.absolute + OWN_ERRORS * own))
        return found.failed / found.count


class Call:
    """A call of the reference with certain inputs."""

    def __init__(self, prepared: Prepared, variant: Variant, seed: int) -> None:
        self.variant, self._prepared = variant, prepared
        self.inputs, non_tensors = prepared.draw(variant, seed)
        before = prepared.states()
        effects = prepared.own.run(before, self.inputs, non_tensors, seed)
        if effects is None:
            raise torch.OutOfMemoryError
        found = tensors_of(effects)
        self.record = CallCheck(
            self.inputs, non_tensors, seed, before, effects.output.dense(), effects.states, (), {}, thorough=True,
            states_written=False)
        self.expected = self._measure({name: found[name] for name in prepared.compared(found, before)})
        """The tensors that a solution's are compared with, by name: see `tensors_of`."""

    def _measure(self, found: Mapping[str, torch.Tensor]) -> dict[str, Expected]:
        suspects = {name: Suspect(name, tensor, tensor, _tolerance(name, tensor)) for name, tensor in found.items()
                    if tensor.is_floating_point() or tensor.is_complex()}
        if suspects:
            self._prepared.sensitivity.measure(self.record, list(suspects.values()), everywhere=True)
        return {name: _expected(tensor, suspects.get(name), self._prepared.sensitivity.has_oracle)
                for name, tensor in found.items()}

    @property
    def bytes(self) -> int:
        """The memory that this call keeps, in bytes: inputs, and for each element of an output three numbers."""
        return sum(each.nbytes for each in self.inputs) + 24 * sum(
            each.own.numel() for each in self.expected.values())

    def run(
        self, *, inputs: Sequence[torch.Tensor] | None = None, weights: Tensors | None = None,
        under: AbstractContextManager[Any] | None = None,
    ) -> Tensors | None:
        """Returns what the oracle computes with other inputs or weights, or under a dispatch mode. None if it raises.

        Without an oracle, the reference takes its place.
        """
        record = self.record
        try:
            with under or nullcontext():
                effects = self._prepared.machine.run(
                    record.states_before, self.inputs if inputs is None else inputs, record.non_tensors,
                    record.random_seed, weights)
        except Exception as error:  # the reference's own code, which may reject these values
            if is_sticky(error):
                raise
            return None
        return None if effects is None else tensors_of(effects)

    def others(self, more: int) -> list[torch.Tensor]:
        """Returns inputs of the same variant under another seed: this call's plus `more`."""
        return self._prepared.draw(self.variant, self.record.random_seed + more)[0]

    def share(self, found: Mapping[str, torch.Tensor] | None) -> float:
        """Returns the largest error of tensors as a share of its limit, as the judge would find it.

        Tensors that are missing count as wrong. Up to 1, the judge would pass them.
        """
        if found is None or not self.expected.keys() <= found.keys():
            return math.inf
        shares = {name: each.share(found[name]) for name, each in self.expected.items()}
        for name, share in shares.items():
            if share > 1:
                shares[name] = self._again(name, found[name], share)
                if not shares[name] <= 1:
                    return shares[name]
        return max(shares.values(), default=0.0)

    def _again(self, name: str, got: torch.Tensor, share: float) -> float:
        """Returns the share after the further runs that the judge makes before it calls an element wrong."""
        expected, sensitivity = self.expected[name], self._prepared.sensitivity
        if got.shape != expected.own.shape:
            return math.inf
        got = got.to(expected.own.dtype)
        if expected.limit is None:
            if float((got != expected.own).double().mean()) > FEW:
                return math.inf
            passed = Choices(sensitivity).compared(self.record, name, name, got, expected.own).passed
            return 0.0 if passed else math.inf
        if not share <= clearly_wrong(RUNS) or expected.failing(got) > FEW:
            return share
        suspect = Suspect(name, got, expected.own, expected.tolerance)
        sensitivity.measure(self.record, [suspect])
        return _expected(expected.own, suspect, sensitivity.has_oracle).share(got)


class Prepared:
    """A problem on a device. Use it as a context manager.

    Args:
        problem: the problem and its shape.
        probed: what the probe found out about the reference.
        device: where the reference runs.
        folder: a folder for temporary files.
    """

    def __init__(self, problem: ProblemAt, probed: ProbeResult, device: torch.device, folder: Path) -> None:
        self.path, self.probed, self.device = problem.path, probed, device
        self._workload = Workload(problem, probed, device, folder)
        self.sensitivity = Sensitivity(self._workload)
        """Measures the limits, as in an evaluation."""
        self.own = self._workload.copy()
        """The reference in its own dtypes."""
        self.machine = self._workload.oracle() or self.own
        """The oracle, or the reference if there is none."""
        self._room = KEPT_SHARE * of(device).free_bytes()
        self._kept: dict[tuple[Variant, int], Call] = {}

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        self._workload.close()

    @property
    def kinds(self) -> list[tuple[Variant, int]]:
        """The variant and the seed of each call, those as drawn first."""
        return [*((Variant.PLAIN, 1 + number) for number in range(PLAIN_CALLS)),
                *((variant, 1) for variant in sorted(self.probed.variants))]

    def label(self, name: str) -> str:
        """Returns what users call a tensor with this name: a gradient is an output that has a name of its own."""
        kind, _, number = name.partition(" ")
        gradients = self.probed.gradients is not None and kind == "output"
        return self.probed.output_names[int(number)] if gradients else name

    def calls(self) -> Iterator[Call]:
        """Yields the calls that answers are tried with."""
        for variant, seed in self.kinds:
            yield self.call(variant, seed)

    def call(self, variant: Variant, seed: int) -> Call:
        """Returns a call with inputs of a variant and a seed."""
        if (variant, seed) in self._kept:
            return self._kept[variant, seed]
        call = Call(self, variant, seed)
        if call.bytes + sum(each.bytes for each in self._kept.values()) <= self._room:
            self._kept[variant, seed] = call
        return call

    def draw(self, variant: Variant, seed: int) -> tuple[list[torch.Tensor], tuple[Any, ...]]:
        """Returns the tensor inputs and the other arguments of a variant and a seed."""
        tensors, non_tensors = self._workload.draw(0, seed, variant)
        return [tensor.clone() for tensor in tensors], non_tensors

    def states(self) -> Tensors:
        """Returns the buffers of a new reference, by name."""
        return snapshot(self._workload.reference())

    def weights(self) -> Tensors:
        """Returns the parameters, by name."""
        return self.own.weights()

    def compared(self, found: Mapping[str, torch.Tensor], before: Tensors) -> list[str]:
        """Returns the names of the tensors that are compared: outputs, and the inputs and states that a call changes.
        """
        changed = {f"input {index}" for index in self.probed.mutated}
        return [name for name, tensor in found.items()
                if name in changed or "output" in name.split() or (
                    name.startswith("buffer ") and not name.endswith(OPTIONAL)
                    and _changes(before.get(name.removeprefix("buffer ")), tensor))]


def _changes(before: torch.Tensor | None, after: torch.Tensor) -> bool:
    return before is None or not torch.equal(before, after)


def _tolerance(name: str, tensor: torch.Tensor) -> float:
    if name.startswith("plain "):
        return NOT_EXACT * tolerance_of(torch.float32, None)
    return tolerance_of(tensor.dtype, None) * (STRICTNESS if name.startswith("buffer ") else 1.0)


def _expected(own: torch.Tensor, suspect: Suspect | None, has_oracle: bool) -> Expected:
    if suspect is None:
        return Expected(own, None, 0.0, None)
    if suspect.limit is None:
        return Expected(own, None, suspect.tolerance, by_size(own, suspect.tolerance))
    return Expected(own, suspect.exact if has_oracle else None, suspect.tolerance, suspect.limit)
