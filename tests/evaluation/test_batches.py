from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.evaluation.integrity.batches import Batch
from inlinebench.problem.variants import Variant
from inlinebench.timing.flags import FlagPage

CALLS, SETS = 3, 8


class Source:
    """Inputs that are unlike all others."""

    def __init__(self) -> None:
        self._drawn = 0

    def choose_variant(self, secret_random: random.Random) -> Variant:
        return Variant.PLAIN

    def write(self, seed: int, variant: Variant, targets: list[torch.Tensor]) -> tuple[int, ...]:
        for target in targets:
            self._drawn += 1
            target.fill_(self._drawn)
        return ()


class Candidate:
    """Queues calls behind a hold that a thread stands for. What the buffers hold is what the calls work on: when the
    hold ran out, or when it was released."""

    def __init__(self, page: FlagPage, buffers: list[torch.Tensor], runs_out: bool, says_held: bool) -> None:
        self._flags, self._buffers = FlagPage(page.fd)._flags, buffers
        self._runs_out, self._says_held = runs_out, says_held
        self.found: list[float] = []

    def ask(self, op: str, on_queued: Any, calls: list[Any], **_: Any) -> dict[str, Any]:
        self._flags.release = self._flags.done = 0
        self._flags.ran_out = int(self._runs_out)
        gpu = threading.Thread(target=self._hold_and_work)
        gpu.start()
        if self._runs_out:
            gpu.join()
        on_queued()
        gpu.join()
        return {"op": "batched", "nonce": 0, "blocked": self._says_held, "non_tensors": [[] for _ in calls]}

    def _hold_and_work(self) -> None:
        while not self._runs_out and not self._flags.release:
            self._flags.beat += 1
            time.sleep(1e-3)
        self.found = [float(buffer) for buffer in self._buffers[:CALLS]]
        self._flags.done = 1

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        pass


@pytest.fixture
def page() -> Iterator[FlagPage]:
    page = FlagPage()
    yield page
    page.close()


def run(page: FlagPage, *, runs_out: bool, says_held: bool, sets: int = SETS) -> tuple[Batch, bool, list[float]]:
    buffers = [torch.zeros(()) for _ in range(sets)]
    workload: Any = SimpleNamespace(
        source=Source(), sets=buffers, inputs=lambda number: [buffers[number]], outputs=lambda number: [],
        poison=lambda numbers: None, synchronize=lambda: None, device=torch.device("cpu"),
    )
    candidate: Any = Candidate(page, buffers, runs_out, says_held)
    batch = Batch(workload, candidate, random.Random(0), random.Random(1), page)
    held, _ = batch.run(min(CALLS, sets))
    return batch, held, candidate.found


def inputs(batch: Batch) -> list[float]:
    return [float(call.tensors[0]) for call in batch.calls]


def test_calls_behind_a_hold_are_checked_on_what_was_written_before_its_release(page: FlagPage) -> None:
    batch, held, found = run(page, runs_out=False, says_held=True)
    assert held and batch.known
    assert inputs(batch) == found


@pytest.mark.parametrize("says_held", [True, False])
def test_calls_whose_hold_ran_out_are_checked_on_what_lay_there(page: FlagPage, says_held: bool) -> None:
    batch, held, found = run(page, runs_out=True, says_held=says_held)
    assert not held, "whatever the candidate says"
    assert batch.known
    assert inputs(batch) == found and 0.0 not in found


def test_where_there_is_one_set_nothing_else_lies_there_and_what_was_found_is_unknown(page: FlagPage) -> None:
    batch, held, _ = run(page, runs_out=True, says_held=False, sets=1)
    assert not held and not batch.known


def test_a_hold_that_ran_out_while_inputs_were_written_leaves_unknown_what_was_found(page: FlagPage) -> None:
    batch, held, _ = run(page, runs_out=False, says_held=False)
    assert not held and not batch.known
