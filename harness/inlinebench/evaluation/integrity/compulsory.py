"""Finds how many bytes of its inputs a call must read. A shorter time than reading them takes is not a time.

A sector of an input is compulsory if the output depends on it, and if the output is wrong without the part of the input
around it. Both are found by computing the call again with these bytes of another draw. Only a sample of sectors at
secret places is tried, so the result is a lower confidence bound.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from inlinebench.evaluation.correctness.compared import compared, tolerance_of
from inlinebench.problem.forward import Output
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload, snapshot

SECTOR_BYTES = 32
"""The fewest bytes that a GPU reads from its memory."""
PARTS = 16
"""The parts of an input. The output must be wrong without a part, or its sectors do not count."""
SAMPLES = 128
"""The number of sectors that are tried. If all are compulsory, the bound is 95 % of all sectors."""
ERROR = 1e-3
"""The probability that the share of compulsory sectors is smaller than its bound."""
NO_EFFECT = 2.0**-40
"""A change of the float64 output, relative to the output's size, that is rounding."""


@dataclass(frozen=True)
class _Sector:
    """A sector of an input, in elements."""

    position: int
    """The position of the input among the tensors."""
    part: int
    """The part of the input that contains the sector."""
    begin: int
    """The first element."""


def compulsory_bytes(workload: Workload, secret_random: random.Random, tolerance: float | None) -> int:
    """Returns how many bytes of the inputs every solution must read in a call, at least.

    Only floating-point inputs count: other values of an integer could be an invalid index. Weights do not count,
    because a solution may pack them before it is called. Returns 0 without an oracle, or without memory for it.

    Args:
        workload: the problem at its shape.
        secret_random: draws the inputs and the sectors.
        tolerance: replaces the default tolerance of each floating-point dtype, unless None.
    """
    trial = _Trial.begin(workload, secret_random, tolerance)
    return 0 if trial is None else trial.least_bytes(secret_random)


def lower_bound(found: int, tried: int, error: float = ERROR) -> float:
    """Returns a lower confidence bound of a probability: the share that `found` of `tried` independent trials show.

    The bound of Clopper and Pearson ("The use of confidence or fiducial limits", 1934): at a probability as low as the
    bound, that many trials or more succeed with the probability `error`.
    """
    if found == 0:
        return 0.0
    low, high = 0.0, found / tried
    while high - low > 1e-6:
        middle = (low + high) / 2
        at_least = sum(math.comb(tried, k) * middle**k * (1 - middle) ** (tried - k) for k in range(found, tried + 1))
        low, high = (middle, high) if at_least < error else (low, middle)
    return low


class _Trial:
    """One call of the oracle, and the same call with bytes of another draw in its inputs."""

    def __init__(
        self, workload: Workload, tensors: list[torch.Tensor], others: list[torch.Tensor],
        non_tensors: tuple[object, ...], tolerance: float | None,
    ) -> None:
        oracle = workload.oracle()
        assert oracle is not None
        self._oracle, self._tensors, self._non_tensors = oracle, tensors, non_tensors
        self._others = [_flat(tensor) for tensor in others]
        self._flat = [_flat(tensor) for tensor in tensors]
        self._states = snapshot(workload.pristine())
        self._tolerances = [tolerance_of(spec.torch_dtype, tolerance) for spec in workload.sets[0].outputs]
        self._parts: dict[tuple[int, int], bool] = {}
        self._output = self._run()

    @classmethod
    def begin(cls, workload: Workload, secret_random: random.Random, tolerance: float | None) -> _Trial | None:
        """Draws two sets of inputs and runs the oracle on the first. Returns None if it cannot run."""
        if not workload.probed.float64:
            return None
        drawn = [workload.inputs(0), workload.inputs(0)]
        sets, non_tensors = [[torch.empty_like(tensor) for tensor in tensors] for tensors in drawn], ()
        for tensors in sets:
            non_tensors = workload.source.write(secret_random.getrandbits(62), Variant.PLAIN, tensors)
        trial = cls(workload, sets[0], sets[1], non_tensors, tolerance)
        return None if trial._output is None else trial

    def least_bytes(self, secret_random: random.Random) -> int:
        """Returns a lower confidence bound of the compulsory bytes of all floating-point inputs."""
        sizes = [
            _distinct_bytes(tensor) if tensor.is_floating_point() else 0 for tensor in self._tensors
        ]
        if not any(sizes):
            return 0
        sectors = [self._choose(position, secret_random)
                   for position in secret_random.choices(range(len(sizes)), sizes, k=SAMPLES)]
        found = sum(self._is_compulsory(sector) for sector in sectors)
        return int(lower_bound(found, SAMPLES) * sum(sizes))

    def _choose(self, position: int, secret_random: random.Random) -> _Sector:
        elements, step = self._flat[position].numel(), self._sector_elements(position)
        begin = secret_random.randrange(-(-elements // step)) * step
        return _Sector(position, begin * PARTS // elements, begin)

    def _is_compulsory(self, sector: _Sector) -> bool:
        end = sector.begin + self._sector_elements(sector.position)
        return (self._part_matters(sector.position, sector.part)
                and self._changes(sector.position, sector.begin, end, [NO_EFFECT] * len(self._tolerances)))

    def _part_matters(self, position: int, part: int) -> bool:
        if (position, part) not in self._parts:
            elements = self._flat[position].numel()
            begin, end = (elements * each // PARTS for each in (part, part + 1))
            self._parts[position, part] = self._changes(position, begin, end, self._tolerances)
        return self._parts[position, part]

    def _changes(self, position: int, begin: int, end: int, tolerances: Sequence[float]) -> bool:
        """Whether other bytes in this range of an input change the output by more than the tolerances."""
        values = self._flat[position][begin:end]
        kept = values.clone()
        values.copy_(self._others[position][begin:end])
        found = self._run()
        values.copy_(kept)
        if found is None or self._output is None or found.metas != self._output.metas:
            return False
        pairs = zip(found.tensors, self._output.tensors, tolerances, strict=True)
        return any(not compared("output", got, expected, tolerance=allowed).passed for got, expected, allowed in pairs)

    def _run(self) -> Output | None:
        """Returns the oracle's output, or None if it has no memory, or rejects a mixture of two draws."""
        try:
            found = self._oracle.run(self._states, self._tensors, self._non_tensors, 0)
            return None if found is None else found.output
        except (RuntimeError, ValueError):
            return None

    def _sector_elements(self, position: int) -> int:
        return max(1, SECTOR_BYTES // self._flat[position].element_size())


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Returns all elements in the order of memory, as a view."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)


def _distinct_bytes(tensor: torch.Tensor) -> int:
    """Returns the bytes of a tensor, or half of them if it is symmetric: the other half follows from these."""
    size = tensor.untyped_storage().nbytes()
    if tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1 and torch.equal(tensor, tensor.mT):
        return size // 2
    return size
