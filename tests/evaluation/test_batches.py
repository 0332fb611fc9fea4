from __future__ import annotations

import ctypes
import itertools
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
from inlinebench.wire.arena import ALIGNMENT, BufferSet, CpuArena, TensorMeta, lay_out, view

CALLS, SETS = 3, 8
METAS = [TensorMeta("float32", (), ()), TensorMeta("float32", (200,), (1,))]
"""The inputs of a call. Its output is the first one again."""


class Source:
    """Writes inputs that all differ from each other."""

    def __init__(self) -> None:
        self._drawn = 0

    def describe(self, variant: Variant, seed: int) -> str:
        return ""

    def write(self, seed: int, variant: Variant, targets: list[torch.Tensor]) -> tuple[int, ...]:
        for target in targets:
            self._drawn += 1
            target.fill_(self._drawn)
        return ()


class HostClock:
    """Stands in for the judge's clock: copies in the host's memory."""

    def stamp_begin(self) -> None:
        pass

    def stamp_end(self) -> None:
        pass

    def sweep(self) -> None:
        pass

    def between_stamps(self) -> float:
        return 1.0

    def copy_rows(self, target: tuple[int, int], source: tuple[int, int], row_bytes: int, rows: int) -> None:
        for row in range(rows):
            ctypes.memmove(target[0] + row * target[1], source[0] + row * source[1], row_bytes)


class Candidate:
    """Queues calls behind a blocking kernel, which a thread simulates. `found` are the inputs that the calls read when
    the blocking kernel timed out or was released."""

    def __init__(self, page: FlagPage, arena: CpuArena, sets: list[BufferSet], *, times_out: bool,
                 reports_blocked: bool) -> None:
        self._flags = FlagPage(page.fd)._flags
        self._buffers = [view(arena.bytes, buffers.inputs[0]) for buffers in sets]
        self._outputs = [view(arena.bytes, buffers.outputs[0]) for buffers in sets]
        self._times_out, self._reports_blocked = times_out, reports_blocked
        self.found: list[float] = []

    def ask(self, op: str, on_queued: Any, calls: list[Any], **_: Any) -> dict[str, Any]:
        self._flags.release = self._flags.done = 0
        self._flags.ran_out = int(self._times_out)
        gpu = threading.Thread(target=self._block_and_work)
        gpu.start()
        if self._times_out:
            gpu.join()
        on_queued()
        gpu.join()
        return {"op": "batched", "nonce": 0, "blocked": self._reports_blocked, "non_tensors": [[] for _ in calls]}

    def _block_and_work(self) -> None:
        while not self._times_out and not self._flags.release:
            time.sleep(1e-3)
        self.found = [float(buffer) for buffer in self._buffers[:CALLS]]
        for buffer, output in zip(self._buffers, self._outputs, strict=True):
            output.fill_(buffer)
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


def run(page: FlagPage, *, times_out: bool, reports_blocked: bool, sets: int = SETS) -> tuple[Batch, bool, list[float]]:
    laid_out, end = list[BufferSet](), 64 * ALIGNMENT
    for _ in range(sets):
        inputs, middle = lay_out(METAS, end)
        outputs, end = lay_out(METAS[:1], middle)
        laid_out.append(BufferSet(tuple(inputs), tuple(outputs)))
    arena = CpuArena(end)
    workload: Any = SimpleNamespace(
        source=Source(), sets=laid_out, arena=arena, poison=lambda numbers: None, synchronize=lambda: None,
        device=torch.device("cpu"),
    )
    candidate: Any = Candidate(page, arena, laid_out, times_out=times_out, reports_blocked=reports_blocked)
    batch = Batch(workload, candidate, random.Random(0), random.Random(1), variants=itertools.repeat(Variant.PLAIN),
                  page=page, clock=HostClock())
    blocked, _ = batch.run(min(CALLS, sets))
    arena.close()
    return batch, blocked, candidate.found


def inputs(batch: Batch) -> list[float]:
    return [float(call.tensors[0]) for call in batch.calls]


def test_calls_behind_the_blocking_kernel_read_the_inputs_written_before_its_release(page: FlagPage) -> None:
    batch, blocked, found = run(page, times_out=False, reports_blocked=True)
    assert blocked and batch.known
    assert inputs(batch) == found
    assert [float(out) for outputs in batch.outputs for out in outputs] == found
    assert [call.tensors[1].shape for call in batch.calls] == [(200,)] * CALLS
    assert [float(call.tensors[1][199]) - float(call.tensors[0]) for call in batch.calls] == [1.0] * CALLS


@pytest.mark.parametrize("reports_blocked", [True, False])
def test_calls_read_the_earlier_inputs_if_the_blocking_kernel_timed_out(page: FlagPage, reports_blocked: bool) -> None:
    batch, blocked, found = run(page, times_out=True, reports_blocked=reports_blocked)
    assert not blocked, "whatever the candidate reports"
    assert batch.known
    assert inputs(batch) == found and 0.0 not in found


def test_the_inputs_that_calls_read_are_unknown_after_a_timeout_with_one_set_of_buffers(page: FlagPage) -> None:
    batch, blocked, _ = run(page, times_out=True, reports_blocked=False, sets=1)
    assert not blocked and not batch.known


def test_the_inputs_that_calls_read_are_unknown_after_a_timeout_while_inputs_were_written(page: FlagPage) -> None:
    batch, blocked, _ = run(page, times_out=False, reports_blocked=False)
    assert not blocked and not batch.known
