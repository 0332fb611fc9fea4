from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.evaluation.integrity.rehearsal import (
    LEAST_SPREAD_MS,
    REPEATS,
    SPREAD,
    TRIES,
    NoRehearsal,
    rehearse,
)
from inlinebench.timing.call import Sample
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import Surroundings
from inlinebench.wire.arena import BufferSet, CpuArena, TensorMeta, TensorSpec, lay_out

SETS = 8
FIXED, EACH, ALONE, OVERHEAD = 0.4, 0.15, 0.1, 0.002
"""The cost of a batch, what each call takes in it, what a call takes alone, and the overhead in that time, in ms."""


class Candidate:
    """Replies to rehearsals, and is the judge's clock, whose stamps say how long the last batch took."""

    def __init__(self, page: FlagPage, noise: Iterator[float], blocked: Iterator[bool]) -> None:
        self.page, self._noise, self._blocked = page, noise, blocked
        self.batches: list[int] = []

    def ask(self, op: str, on_queued: Any, **facts: Any) -> dict[str, Any]:
        assert op == "rehearse" and facts["states"] == []
        assert BufferSet.from_json(facts["sets"][0]).inputs[0].bytes == 4
        self.batches.append(len(facts["sets"]))
        self.page._flags.done = 1
        on_queued()
        return {"op": "rehearsed", "nonce": "", "blocked": next(self._blocked), "alone_ms": ALONE + OVERHEAD,
                "alone_blocked": True}

    def between_stamps(self) -> float:
        return FIXED + EACH * self.batches[-1] + next(self._noise)

    def copy_rows(self, target: tuple[int, int], source: tuple[int, int], row_bytes: int, rows: int) -> None:
        assert rows == self.batches[-1] and row_bytes % 16 == 0

    def stamp_begin(self) -> None:
        pass

    def stamp_end(self) -> None:
        pass

    def sweep(self) -> None:
        pass


@pytest.fixture
def page() -> Iterator[FlagPage]:
    page = FlagPage()
    yield page
    page.close()


def rehearsed(candidate: Candidate, sets: int = SETS, outputs: int = 1) -> Any:
    meta, laid_out, end = TensorMeta("float32", (), ()), list[BufferSet](), 0
    for _ in range(sets):
        specs, end = lay_out([meta] * (1 + outputs), end)
        laid_out.append(BufferSet(tuple(specs[:1]), tuple(specs[1:])))
    arena = CpuArena(end)
    workload: Any = SimpleNamespace(
        sets=laid_out, arena=arena, state_specs=dict[str, TensorSpec](), states={}, synchronize=lambda: None,
        probed=SimpleNamespace(outputs=[meta] * outputs), device=arena.bytes.device,
        costs=SimpleNamespace(surroundings=Surroundings(0.0, 0.0, left_ms=0.015)))

    def own_ms(sample: Sample) -> float:
        return sample.device_ms - OVERHEAD

    try:
        return rehearse(workload, candidate, candidate, own_ms)  # type: ignore[arg-type]
    finally:
        arena.close()


def test_the_costs_of_a_batch_are_its_time_without_that_of_its_calls(page: FlagPage) -> None:
    candidate = Candidate(page, itertools.repeat(0.0), itertools.repeat(True))
    costs = rehearsed(candidate)
    assert candidate.batches == [1] * REPEATS + [SETS] * REPEATS
    assert (costs.most, costs.left_ms, costs.spread_ms) == (SETS, 0.015, LEAST_SPREAD_MS)
    for calls in (1, 3, SETS):
        assert costs.of(calls) + calls * ALONE == pytest.approx(FIXED + EACH * calls)


def test_the_spread_is_measured(page: FlagPage) -> None:
    costs = rehearsed(Candidate(page, itertools.cycle([0.0, 0.1, 0.3]), itertools.repeat(True)))
    assert costs.spread_ms == pytest.approx(SPREAD * 0.3)
    assert costs.of(1) + ALONE == pytest.approx(FIXED + EACH + 0.1), "the median counts"


def test_a_batch_whose_blocking_kernel_timed_out_does_not_count(page: FlagPage) -> None:
    candidate = Candidate(page, itertools.repeat(0.0), itertools.cycle([False, True]))
    rehearsed(candidate)
    assert candidate.batches == [1] * 2 * REPEATS + [SETS] * 2 * REPEATS


def test_a_rehearsal_ends_if_no_blocking_kernel_lasts(page: FlagPage) -> None:
    candidate = Candidate(page, itertools.repeat(0.0), itertools.repeat(False))
    with pytest.raises(NoRehearsal, match=f"only 0 of {TRIES} batches of 1 calls"):
        rehearsed(candidate)


@pytest.mark.parametrize(("sets", "outputs", "most"), [(1, 1, 1), (SETS, 100, 4), (SETS, 1000, 1)])
def test_a_batch_has_no_more_steps_than_a_devices_queue(page: FlagPage, sets: int, outputs: int, most: int) -> None:
    candidate = Candidate(page, itertools.repeat(0.0), itertools.repeat(True))
    assert rehearsed(candidate, sets, outputs).most == most
    assert max(candidate.batches) == most
