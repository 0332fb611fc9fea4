"""Makes calls on the same inputs again, in several processes and places in memory, and compares their results bit by
bit (`--determinism`).

The verdict does not depend on it: sums by atomic operations may round differently in each call and be right. Each of
these calls is compared with the reference as all others are. Only those with other rows are not: `get_inputs` may not
return such inputs, and a solution need not accept them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.compare.ulps import differing, ulps_between
from inlinebench.devices.registry import of
from inlinebench.evaluation.batch import Batch, find_batch
from inlinebench.evaluation.draws import Drawn
from inlinebench.problem.problem_file import raised
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.results.repeats import Repeatability, Varying
from inlinebench.wire.arena import BufferSet

CALLS = 20
"""The calls on the same inputs that each process makes."""
PROCESSES = 2
"""How many processes make them."""
STATEFUL = "--determinism: not measured, since each call changes the reference's buffers for the next one"
"""A remark on a workload whose calls on the same inputs may differ."""
HOST = torch.device("cpu")

Call = Callable[[Drawn, int], Sequence[torch.Tensor]]
"""Makes a call, the one with this number, and returns the tensors that it computed, in private memory."""


class Repeats:
    """The calls on the same inputs of one solution at one workload. `name` distinguishes the workloads of a run.

    The inputs are drawn once. Raises ProblemError if `get_inputs` fails.
    """

    def __init__(self, workload: Workload, seed: int, name: str) -> None:
        secret = SecretRandom(seed, f"{name}/repeats")
        self._workload, self._random = workload, secret.getrandbits(62)
        inputs, self._non_tensors = workload.draw(0, secret.getrandbits(62), Variant.PLAIN)
        self._inputs = [tensor.to(HOST, copy=True) for tensor in inputs]
        self._batch: Batch | None = None
        self._tensors: list[_Tensor] = []
        self._sets = set[int]()
        self._calls = self._equal = self._processes = 0
        self._moved, self._alone = list[bool](), list[bool]()

    def prepare(self) -> bool:
        """Finds the batch. Returns whether calls on the same inputs compute the same: not if each changes the state
        that the next one reads. Raises ProblemError if the reference raises.
        """
        if not self._stateless():
            return False
        self._batch = find_batch(self._workload, self._drawn(0), self._random)
        return True

    @property
    def more_sets(self) -> tuple[BufferSet, ...]:
        """The set of buffers of `make_with_first_row`, whose number is the first one after those of the workload."""
        return () if self._batch is None or self._batch.alone is None else (self._batch.alone,)

    def make(self, call: Call, sets: Callable[[], int]) -> None:
        """Makes the calls of one process. `sets` chooses the buffers of each. Raises what `call` raises."""
        self._processes += 1
        for number in range(1, CALLS + 1):
            drawn = self._drawn(sets())
            self._sets.add(drawn.buffer_set)
            self._add(call(drawn, number))
        for each in self._tensors:
            each.release()

    def make_with_rows_moved(self, outputs: Callable[[Drawn], Sequence[torch.Tensor]], buffer_set: int) -> None:
        """Makes a call with the rows of the batch in another order, if there is a batch. `outputs` makes a call and
        returns its outputs. Raises what it raises."""
        if (batch := self._batch) is not None:
            results = outputs(batch.moved(self._drawn(buffer_set)))
            self._moved.append(_equal([each.first[batch.order.cpu()] for each in self._tensors], results))

    def make_with_first_row(self, ask: Callable[[Drawn], None]) -> None:
        """Makes a call with a batch of only the first row, if there is a batch. Raises what `ask` raises."""
        batch, workload = self._batch, self._workload
        if batch is None or batch.alone is None:
            return
        drawn = self._drawn(0)
        batch.hand_over_first(workload, drawn.tensors)
        ask(Drawn(len(workload.sets), drawn.tensors, drawn.non_tensors, drawn.variant, drawn.change, self._random))
        self._alone.append(_equal([each.first[:1] for each in self._tensors], batch.receive_first(workload)))

    def summary(self) -> Repeatability:
        """Returns the record of all calls so far. Nothing is said about rows if the bits vary anyway."""
        varying = tuple(filter(None, (each.varying() for each in self._tensors)))
        # On the CPU, the candidate copies inputs to new memory in every second call.
        moved = len(self._sets) > 1 or of(self._workload.device).kind.emulates_cuda
        return Repeatability(self._calls, self._equal, self._processes, moved, varying,
                             None if varying else self._in_all(self._moved),
                             None if varying else self._in_all(self._alone))

    def _stateless(self) -> bool:
        if not self._workload.states:
            return True
        drawn, before = self._drawn(0), dict(self._workload.pristine().named_buffers())
        try:
            effects = self._workload.copy().run(before, drawn.tensors, drawn.non_tensors, drawn.random_seed)
        except Exception as error:
            raise raised(self._workload.problem, error) from error
        return effects is not None and all(
            name in before and same_bits(state.cpu(), before[name]) for name, state in effects.states.items())

    def _in_all(self, equal: Sequence[bool]) -> bool | None:
        """Returns whether all processes made calls that were equal, or None if a process made none."""
        return all(equal) if len(equal) == self._processes else None

    def _drawn(self, buffer_set: int) -> Drawn:
        tensors = self._workload.private(buffer_set)
        for target, tensor in zip(tensors, self._inputs, strict=True):
            target.copy_(tensor)
        return Drawn(buffer_set, tensors, self._non_tensors, Variant.PLAIN, "inputs as drawn", self._random)

    def _add(self, results: Sequence[torch.Tensor]) -> None:
        if not self._tensors:
            self._tensors = [_Tensor(name, tensor) for name, tensor in zip(self._names(), results, strict=True)]
        self._calls += 1
        self._equal += all([each.equals(new) for each, new in zip(self._tensors, results, strict=True)])

    def _names(self) -> Iterator[str]:
        yield from self._workload.probed.output_names
        yield from (f"input {index}, which the reference changes" for index in self._workload.probed.mutated)


def _equal(expected: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> bool:
    """Whether results have the same bits as tensors in the host's memory, whatever their strides."""
    return not any(bool(differing(one, other.to(HOST)).any()) for one, other in zip(expected, results, strict=True))


class _Tensor:
    """A tensor of the first call, and where later calls had other bits. Kept in the host's memory, since those of all
    workloads of a set are kept. Calls are compared on their device, to which the tensor is copied until `release`."""

    def __init__(self, what: str, first: torch.Tensor) -> None:
        self._what, self.first = what, first.to(HOST, copy=True)
        self._copy: torch.Tensor | None = None
        self._differs = torch.zeros(first.shape, dtype=torch.bool, device=HOST)
        self._ulps: float | None = 0.0 if first.is_floating_point() else None

    def equals(self, new: torch.Tensor) -> bool:
        """Whether a later call's tensor has the same bits. Notes where it does not."""
        if self._copy is None:
            try:
                self._copy = self.first.to(new.device)
            except torch.OutOfMemoryError:
                self._copy = self.first  # slower to compare with
        if same_bits(self._copy, new.to(self._copy.device)):
            return True
        new = new.to(HOST)
        differs = differing(self.first, new)
        self._differs |= differs
        if self._ulps is not None:
            self._ulps = max(self._ulps, ulps_between(self.first[differs], new[differs]))
        return False

    def release(self) -> None:
        """Frees the copy on the device."""
        self._copy = None

    def varying(self) -> Varying | None:
        """Returns the record of what has varied. None if nothing has."""
        elements = int(self._differs.sum())
        ulps = None if self._ulps is None or math.isinf(self._ulps) else round(self._ulps)
        return Varying(self._what, elements, self._differs.numel(), ulps) if elements else None
