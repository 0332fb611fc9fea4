"""Calls on the same inputs over a real workload on the CPU, with functions that play the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from inlinebench.evaluation.draws import Drawn
from inlinebench.evaluation.repeats import CALLS, Repeats, _Tensor
from inlinebench.problem.workload import Workload
from inlinebench.results.repeats import Repeatability, Varying

from .workloads import workload_of

Solution = Callable[[Sequence[Tensor], int], Tensor]
UNSEEDED = "[torch.tensor(list(os.urandom(48))).view(6, 8) / 9, torch.rand(8)]"


def right(tensors: Sequence[Tensor], number: int) -> Tensor:
    return tensors[0] * tensors[1]


def nudged(tensor: Tensor) -> Tensor:
    """Returns a tensor whose first two elements are the next larger ones."""
    out = tensor.clone()
    out.view(-1)[:2] = torch.nextafter(out.view(-1)[:2], torch.tensor(9e9))
    return out


def repeats_of(workload: Workload) -> Repeats:
    repeats = Repeats(workload, 5, "problem/full")
    assert repeats.prepare()
    return repeats


def measured(workload: Workload, solution: Solution, moved: Solution | None = None) -> Repeatability:
    """Makes the calls of two processes. `moved` plays the solution for rows in another order."""
    repeats = repeats_of(workload)
    for process in range(2):
        repeats.make(lambda call, number, begun=process * CALLS: [solution(call.tensors, begun + number)], lambda: 0)
        repeats.make_with_rows_moved(lambda call: [(moved or solution)(call.tensors, 1)], 0)
    return repeats.summary()


@pytest.mark.parametrize("inputs", ["[torch.rand(6, 8), torch.rand(8)]", UNSEEDED])
def test_inputs_are_drawn_once_even_if_they_follow_from_no_seed(tmp_path: Path, inputs: str) -> None:
    found = measured(workload_of(tmp_path, "return x * y", inputs), right)
    assert found == Repeatability(2 * CALLS, 2 * CALLS, 2, True, (), True, None)


def test_what_varies_is_counted_with_its_distance(tmp_path: Path) -> None:
    found = measured(workload_of(tmp_path, "return x * y"),
                     lambda tensors, number: nudged(right(tensors, 0)) if number in {7, 31} else right(tensors, 0))
    assert found == Repeatability(2 * CALLS, 2 * CALLS - 2, 2, True, (Varying("output", 2, 48, 1),))


def test_a_process_that_differs_from_the_first_one_is_seen(tmp_path: Path) -> None:
    found = measured(workload_of(tmp_path, "return x * y"),
                     lambda tensors, number: nudged(right(tensors, 0)) if number > CALLS else right(tensors, 0))
    assert (found.equal, found.calls) == (CALLS, 2 * CALLS)


def test_elements_that_are_nan_have_no_distance(tmp_path: Path) -> None:
    found = measured(workload_of(tmp_path, "return x * y"),
                     lambda tensors, number: right(tensors, 0).fill_(torch.nan if number % 2 else 1.0))
    assert found.varying == (Varying("output", 48, 48, None),)


def test_a_row_that_depends_on_its_place_is_seen(tmp_path: Path) -> None:
    found = measured(workload_of(tmp_path, "return x * y"), right, lambda tensors, number: nudged(right(tensors, 0)))
    assert found.rows_equal is False and found.equal == found.calls


def test_the_first_row_is_compared_with_its_bits_in_the_batch(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, "return x * y")
    for change, expected in ((torch.clone, True), (nudged, False)):
        repeats = repeats_of(workload)
        repeats.make(lambda call, number: [right(call.tensors, 0)], lambda: 0)

        def answer(call: Drawn, change: Callable[[Tensor], Tensor] = change) -> None:
            assert call.buffer_set == 1, "the set after those of the workload"
            workload.outputs(0)[0][:1] = change(right(workload.inputs(0), 0)[:1])

        repeats.make_with_first_row(answer)
        assert repeats.summary().first_row_equal is expected


def test_a_row_is_judged_only_if_each_process_has_computed_it(tmp_path: Path) -> None:
    repeats = repeats_of(workload_of(tmp_path, "return x * y"))
    for _ in range(2):
        repeats.make(lambda call, number: [right(call.tensors, 0)], lambda: 0)
    repeats.make_with_rows_moved(lambda call: [right(call.tensors, 0)], 0)
    assert repeats.summary().rows_equal is None


@pytest.mark.parametrize(("made", "forward", "expected"), [
    ("self.register_buffer('seen', torch.zeros(8))", "self.seen += 1; return x * y", False),
    ("self.register_buffer('seen', torch.zeros(8))", "return x * y + self.seen", True),
    ("pass", "return x * y", True),
])
def test_calls_that_change_the_state_of_the_next_one_cannot_be_repeated(
    tmp_path: Path, made: str, forward: str, expected: bool
) -> None:
    assert Repeats(workload_of(tmp_path, forward, made=made), 5, "problem/full").prepare() is expected


def test_an_input_that_the_reference_changes_is_compared_and_given_anew(tmp_path: Path) -> None:
    repeats = repeats_of(workload_of(tmp_path, "x += y; return x * 1"))

    def call(drawn: Drawn, number: int) -> list[Tensor]:
        first = drawn.tensors[0].add_(drawn.tensors[1])
        return [first * 1, nudged(first) if number == 3 else first.clone()]

    repeats.make(call, lambda: 0)
    (varying,) = repeats.summary().varying
    assert varying == Varying("input 0, which the reference changes", 2, 48, 1)


def test_calls_are_compared_in_the_host_s_memory_if_a_copy_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, full = _Tensor("output", torch.zeros(3)), [True]
    move = torch.Tensor.to

    def to(tensor: torch.Tensor, *wanted: Any, **more: Any) -> torch.Tensor:
        if full:
            full.clear()
            raise torch.OutOfMemoryError
        return move(tensor, *wanted, **more)

    monkeypatch.setattr(torch.Tensor, "to", to)
    assert first.equals(torch.zeros(3)) and not full
    assert not first.equals(torch.tensor([0.0, 1.0, 0.0]))
    found = first.varying()
    assert found is not None and found.elements == 1
