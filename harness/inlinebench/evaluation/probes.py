"""Finds out what a wrong output depends on, after the verdict: nothing that is said here can change it.

The reference is run with changed weights and inputs, to see which change explains the solution's output. Then the
solution is asked again, with some values of an input replaced, to see which elements change
(`inlinebench.compare.influence`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from inlinebench.compare.influence import Influence, Part, close, explains, from_index, influence, parts
from inlinebench.evaluation.draws import Drawn
from inlinebench.problem.forward import Tensors
from inlinebench.problem.workload import Workload
from inlinebench.process.steps import FORWARD_TO_EXPLAIN

LIMIT_S = 2.0
"""The time for all runs and calls together, of which explanations get a half. They end with the step that exceeds it.
"""
MOST_SENTENCES = 3
"""The most sentences about one output."""
MOST_BYTES = 1 << 30
"""If inputs and output are larger together, nothing is found out."""
CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "were transposed": lambda tensor: tensor.mT,
    "were read in memory as if it were transposed": lambda tensor: tensor.reshape(
        *tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]).mT,
    "were in the opposite order along its last dimensions": lambda tensor: tensor.flip(-1, -2),
    "were all 0": torch.zeros_like,
    "were all 1": torch.ones_like,
}
"""What a solution may have made of a tensor."""

_OUTPUT = re.compile(r"output(?: (\d+))?")

Ask = Callable[[Drawn], Sequence[torch.Tensor]]
"""Has the solution make a call on the private inputs of a set, and returns its outputs."""


def output_number(what: str) -> int | None:
    """Returns the number of the output that a mismatch is about, or None if it is about something else."""
    match = _OUTPUT.fullmatch(what)
    return int(match[1] or 0) if match else None


@dataclass(frozen=True)
class _Call:
    """A call with drawn inputs, and what the solution and the reference made of it."""

    drawn: Drawn
    """The call. Its inputs are replaced for a while."""
    inputs: Sequence[torch.Tensor]
    """Copies of the inputs as drawn."""
    got: torch.Tensor
    """The solution's output."""
    expected: torch.Tensor
    """The reference's output."""


class Probes:
    """Runs the reference and asks the solution again.

    Args:
        workload: the problem at its shape.
        states: the reference's buffers.
        ask: has the solution make a call.
    """

    def __init__(self, workload: Workload, states: Tensors, ask: Ask) -> None:
        self._begin = time.monotonic()
        self._workload, self._states, self._ask = workload, states, ask
        self._reference = workload.copy()

    def sentences(self, drawn: Drawn, output: int) -> Iterator[str]:
        """Yields what the solution's output with this number depends on, on the inputs of a new call."""
        got = self._ask(drawn)[output]
        size = sum(each.numel() * each.element_size() for each in [*drawn.tensors, got])
        if size > MOST_BYTES or not self._has_time():
            return
        inputs = [tensor.clone() for tensor in drawn.tensors]
        expected = self._run(drawn, inputs, output, step=None)
        if expected is None or not self._has_time() or got.shape != expected.shape or not got.numel():
            return
        call = _Call(drawn, inputs, got, expected)
        explained = next(self._explanations(call, output), None)
        if explained is not None:
            yield explained
        elif self._has_time() and self._differs_by_itself(call, output):
            yield "it differs from call to call on the same inputs: look for a race or uninitialized memory"
        else:
            yield from self._influences(call, output)

    def _run(
        self, drawn: Drawn, inputs: Sequence[torch.Tensor], output: int,
        weights: Mapping[str, torch.Tensor] | None = None, *, step: str | None = FORWARD_TO_EXPLAIN,
    ) -> torch.Tensor | None:
        found = self._reference.run(self._states, inputs, drawn.non_tensors, drawn.random_seed, weights, step=step)
        if found is None or not all(torch.equal(found.states[name], state) for name, state in self._states.items()):
            return None  # the solution's own states differ from call to call
        return found.output.tensors[output]

    def _has_time(self, share: float = 1.0) -> bool:
        return time.monotonic() < self._begin + share * LIMIT_S

    def _explanations(self, call: _Call, output: int) -> Iterator[str]:
        """Yields which change of a tensor makes the reference compute what the solution does."""
        for name, tensor, run in self._tensors(call, output):
            for words, change in CHANGES.items():
                if not self._has_time(0.5):
                    return
                changed = change(tensor) if tensor.dim() > 1 or "all" in words else tensor
                if changed.shape != tensor.shape or torch.equal(changed, tensor):
                    continue
                other = run(changed.contiguous())
                if other is not None and explains(call.got, call.expected, other):
                    yield f"the output is what the reference computes if {name} {words}"
                    return

    def _tensors(
        self, call: _Call, output: int
    ) -> Iterator[tuple[str, torch.Tensor, Callable[[torch.Tensor], torch.Tensor | None]]]:
        """Yields the name of each tensor, itself, and a function that runs the reference with another in its place."""
        def with_weight(name: str) -> Callable[[torch.Tensor], torch.Tensor | None]:
            return lambda changed: self._run(call.drawn, call.inputs, output, {name: changed})

        def with_input(position: int) -> Callable[[torch.Tensor], torch.Tensor | None]:
            return lambda changed: self._run(call.drawn, _with(call.inputs, position, changed), output)

        for name, weight in self._reference.weights().items():
            yield f"weight {name}", weight, with_weight(name)
        for position, tensor in enumerate(call.inputs):
            if tensor.is_floating_point():
                yield f"input {position}", tensor, with_input(position)

    def _differs_by_itself(self, call: _Call, output: int) -> bool:
        again = self._ask(call.drawn)[output]
        return call.got.is_floating_point() and not bool(close(again, call.got).all())

    def _influences(self, call: _Call, output: int) -> Iterator[str]:
        """Yields a sentence for each input whose values the solution uses otherwise than the reference."""
        for position, tensor in enumerate(call.inputs):
            if tensor.numel() > 1 and tensor.is_floating_point():
                yield from islice(self._influences_of(call, position, output), 1)

    def _influences_of(self, call: _Call, position: int, output: int) -> Iterator[str]:
        tensor = call.inputs[position]
        whole = from_index(position, 0, tensor, 0)
        found = self._influence(call, whole, output)
        if found is not None and found.none_left:
            yield from filter(None, [found.describe(whole)])
            return
        measured = list[tuple[tuple[int, int], str | None]]()
        for dimension in (number for number in range(tensor.dim()) if tensor.shape[number] > 1):
            for part in parts(position, dimension, tensor):
                found = self._influence(call, part, output)
                if found is not None:
                    measured.append(_measured(part, found))
            end = self._unused_end(call, position, dimension, output)
            measured += [] if end is None else [_measured(*end)]
        yield from (words for _, words in sorted(measured, key=lambda each: each[0]) if words)

    def _unused_end(
        self, call: _Call, position: int, dimension: int, output: int
    ) -> tuple[Part, Influence] | None:
        """Returns the longest end of a dimension that has no effect on the solution, but on the reference."""
        tensor, unused = call.inputs[position], None
        low, high = 0, tensor.shape[dimension] - 1  # from `low` on it is used, since the whole input is
        first = high
        while True:
            part = from_index(position, dimension, tensor, first)
            found = self._influence(call, part, output)
            if found is not None and found.none_left:
                high, unused = first, (part, found)
            elif unused is None:
                return None
            else:
                low = first
            if high - low <= 1:
                return unused
            first = (low + high) // 2

    def _influence(self, call: _Call, part: Part, output: int) -> Influence | None:
        """Returns the influence of a part, or None if there is no time left or it cannot be found out."""
        if not self._has_time():
            return None
        tensor = call.inputs[part.position]
        changed = part.replaced(tensor)
        expected = self._run(call.drawn, _with(call.inputs, part.position, changed), output)
        if expected is None or expected.shape != call.expected.shape:
            return None
        private = call.drawn.tensors[part.position]
        private.copy_(changed)
        try:
            got = self._ask(call.drawn)[output]
        finally:
            private.copy_(tensor)
        return influence((call.expected, expected), (call.got, got))


def _measured(part: Part, found: Influence) -> tuple[tuple[int, int], str | None]:
    """Returns what sorts a part and its sentence: a large unused part tells most, and then a single index."""
    return ((0, -part.size) if found.is_unused else (1, part.size)), found.describe(part)


def _with(inputs: Sequence[torch.Tensor], position: int, changed: torch.Tensor) -> list[torch.Tensor]:
    return [changed if number == position else tensor for number, tensor in enumerate(inputs)]

