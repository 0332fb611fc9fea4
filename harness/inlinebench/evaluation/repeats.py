"""Makes calls on the same inputs again, in several processes and places in memory, and compares their results bit by
bit (`--determinism`).

The verdict is known before, and does not depend on it: sums by atomic operations may round differently in each call
and be right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.evaluation.draws import Drawn
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.results.repeats import Repeatability, Varying

CALLS = 20
"""The calls on the same inputs that each process makes."""
PROCESSES = 2
"""How many processes make them."""
CLOSE = 1e-9
"""Results of the oracle that differ by less, relative to the largest, are those of the same row."""
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integers of each number of bytes."""
STATEFUL = "--determinism: not measured, since each call changes the reference's buffers for the next one"
"""A remark on a workload whose calls on the same inputs may differ."""

Call = Callable[[Drawn, int], Sequence[torch.Tensor]]
"""Makes a call, the one with this number, and returns the tensors that it computed, in private memory."""


class Repeats:
    """The calls on the same inputs of one solution at one workload. `name` distinguishes the candidates of a run."""

    def __init__(self, workload: Workload, seed: int, name: str) -> None:
        secret = SecretRandom(seed, f"{name}/repeats")
        self._workload = workload
        self._inputs, self._random = secret.getrandbits(62), secret.getrandbits(62)
        self._tensors: list[_Tensor] = []
        self._in_order: Sequence[torch.Tensor] = ()
        self._places = set[int]()
        self._batch: _Batch | None = None
        self._calls = self._equal = self._processes = 0
        self._rows_equal: bool | None = None

    def measurable(self) -> bool:
        """Whether calls on the same inputs compute the same: not if each changes the state that the next one reads."""
        if not self._workload.states:
            return True
        reference = self._workload.copy()
        drawn = self._drawn(0)
        before = dict(self._workload.pristine().named_buffers())
        effects = reference.run(before, drawn.tensors, drawn.non_tensors, drawn.random_seed)
        return effects is not None and all(
            name in before and same_bits(state.cpu(), before[name]) for name, state in effects.states.items())

    def make(self, call: Call, sets: Callable[[], int]) -> None:
        """Makes the calls of one process. `sets` chooses the buffers of each. Raises what `call` raises."""
        if self._processes == 0:
            self._batch = self._find_batch()
        self._processes += 1
        for number in range(1, CALLS + 1):
            self._add(call(self._drawn(sets()), number))
        if self._batch is not None:
            moved = self._batch.moved(self._drawn(sets()))
            self._compare_rows(call(moved, CALLS + 1), self._batch)

    def summary(self) -> Repeatability:
        """Returns the record of all calls so far."""
        varying = tuple(filter(None, (each.varying() for each in self._tensors)))
        return Repeatability(self._calls, self._equal, self._processes, len(self._places), varying, self._rows_equal)

    def _drawn(self, buffer_set: int) -> Drawn:
        self._places.add(buffer_set)
        tensors, others = self._workload.draw(buffer_set, self._inputs, Variant.PLAIN)
        return Drawn(buffer_set, tensors, others, Variant.PLAIN, "repeated inputs", self._random)

    def _add(self, results: Sequence[torch.Tensor]) -> None:
        if not self._tensors:
            self._tensors = [_Tensor(name, tensor) for name, tensor in zip(self._names(), results, strict=True)]
            return
        self._calls += 1
        self._equal += all([each.equals(new) for each, new in zip(self._tensors, results, strict=True)])

    def _names(self) -> Iterator[str]:
        yield from self._workload.probed.output_names
        yield from (f"input {index}, which the reference changes" for index in self._workload.probed.mutated)

    def _find_batch(self) -> _Batch | None:
        """Returns which tensors have a row for each example, by the oracle. None if none have, or if it is not known.

        If the rows of these inputs are in another order, those of the outputs must be, too.
        """
        oracle, outputs = self._workload.oracle(), self._workload.probed.outputs
        sizes = {meta.shape[:1] for meta in outputs}
        if oracle is None or len(sizes) != 1 or self._workload.probed.mutated:
            return None
        (rows,) = next(iter(sizes)) or (0,)
        fitting = [index for index, meta in enumerate(self._workload.probed.inputs) if meta.shape[:1] == (rows,)]
        if rows < 2 or not fitting:
            return None
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(self._random), device="cpu")
        exact = self._oracle_of(oracle, self._drawn(0))
        for inputs in (fitting, fitting[:1]):
            batch = _Batch(tuple(inputs), order.to(self._workload.device))
            moved = self._oracle_of(oracle, batch.moved(self._drawn(0)))
            if exact is None or moved is None:
                return None
            if all(map(_close, moved, (each[batch.order] for each in exact))):
                return batch
        return None

    def _oracle_of(self, oracle: ReferenceCopy, call: Drawn) -> Sequence[torch.Tensor] | None:
        states = dict(self._workload.pristine().named_buffers())
        if not oracle.has_room(call.tensors):
            return None
        found = oracle.run(states, call.tensors, call.non_tensors, call.random_seed)
        return None if found is None else found.output.tensors

    def _compare_rows(self, results: Sequence[torch.Tensor], batch: _Batch) -> None:
        equal = not any(bool(differing(new, each.first[batch.order]).any())
                        for each, new in zip(self._tensors, results, strict=True))
        self._rows_equal = equal and self._rows_equal is not False


class _Tensor:
    """A tensor of the first call, and where later calls had other bits."""

    def __init__(self, what: str, first: torch.Tensor) -> None:
        self._what, self.first = what, first
        self._differs = torch.zeros(first.shape, dtype=torch.bool, device=first.device)
        self._ulps: float | None = 0.0 if first.is_floating_point() else None

    def equals(self, new: torch.Tensor) -> bool:
        """Whether a later call's tensor has the same bits. Notes where it does not."""
        if same_bits(self.first, new):
            return True
        differs = differing(self.first, new)
        self._differs |= differs
        if self._ulps is not None:
            self._ulps = max(self._ulps, ulps_between(self.first[differs], new[differs]))
        return False

    def varying(self) -> Varying | None:
        """Returns the record of what has varied. None if nothing has."""
        elements = int(self._differs.sum())
        ulps = None if self._ulps is None or math.isinf(self._ulps) else round(self._ulps)
        return Varying(self._what, elements, self._differs.numel(), ulps) if elements else None


@dataclass(frozen=True)
class _Batch:
    """The inputs whose first dimension is the batch, and another order of its rows."""

    inputs: tuple[int, ...]
    order: torch.Tensor

    def moved(self, call: Drawn) -> Drawn:
        """Returns the call with the rows of its inputs in the other order."""
        for index in self.inputs:
            call.tensors[index].copy_(call.tensors[index][self.order])
        return call


def differing(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns whether each element of one tensor has other bits than that of another, of the same shape and dtype."""
    pair = [tensor.contiguous().view(torch.uint8).view(*tensor.shape, -1) for tensor in (one, other)]
    return (pair[0] != pair[1]).any(dim=-1)


def ulps_between(one: torch.Tensor, other: torch.Tensor) -> float:
    """Returns the largest distance of elements of two floating-point tensors (1-d) in units in the last place: how many
    numbers of their dtype lie between them, and one. Infinite if one of them is NaN or infinite."""
    if not bool((one.isfinite() & other.isfinite()).all()):
        return math.inf
    return float((_place(one) - _place(other)).abs().max())


def _place(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the place of each number among all of its dtype: that of 0 is 0, and that of -x is minus that of x."""
    integer = INTEGERS[tensor.element_size()]
    bits = tensor.contiguous().view(integer).to(torch.int64)
    return torch.where(bits < 0, -(bits - torch.iinfo(integer).min), bits).to(torch.float64)


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=CLOSE, atol=CLOSE * float(other.abs().max()), equal_nan=True)
