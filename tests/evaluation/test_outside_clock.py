"""Held calls with a made-up clock and process over real memory of the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity import outside_clock as module
from inlinebench.evaluation.integrity.outside_clock import HeldRequest, OutsideClock
from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateCheated
from inlinebench.process.replies import read_held
from inlinebench.wire.arena import view
from inlinebench.wire.locations import BadLocation, Location

CPU = torch.device("cpu")
PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x, cache):
        self.calls += 1
        cache += 1
        return x * 2

def get_inputs():
    return [torch.randn(5), torch.randn(4)]

def get_init_inputs():
    return []
"""


class Clock:
    """Copies memory at once, and records its steps."""

    def __init__(self, page: FlagPage) -> None:
        self.page, self.steps = page, list[str]()

    def map(self, page: FlagPage) -> int:
        assert page is self.page
        return 1

    def unmap(self, page: FlagPage) -> None:
        self.steps.append("unmap")

    def gather(self) -> None:
        self.steps.append("gather")

    def stamp_begin(self) -> None:
        self.steps.append("begin")

    def move(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)
        self.steps.append(f"move {size}")

    def sweep(self) -> None:
        self.steps.append("sweep")

    def release_other(self, flags: int) -> None:
        assert flags == 1
        self.page.release()
        self.steps.append("release")

    def stamp_end(self) -> None:
        self.steps.append("end")

    def between_stamps(self) -> float:
        return 0.25


class Process:
    """A candidate that keeps its outputs and states in memory of its own, and works when it is released."""

    def __init__(self, workload: Workload) -> None:
        self.page: FlagPage | None = FlagPage()
        self.workload = workload
        self.output, self.states = torch.zeros(5), torch.zeros(3)
        self.places: Any = [["", self.output.data_ptr()], ["", self.states.data_ptr()]]
        self.dawdles = False
        self.reply: dict[str, Any] = {}

    def ask(self, operation: str, on_held: Callable[[dict[str, Any]], None], on_host: bool, **facts: Any) -> Any:
        assert operation == "hold" and facts == {"set": 0}
        page = self.page
        assert page is not None
        page._flags.release, page._flags.done, page._flags.ran_out = 0, 1, int(self.dawdles)
        self.work_when_released(copies=on_host)
        on_held({"op": "held", "nonce": "n", "places": None if on_host else self.places})
        return {"op": "held call", "nonce": "n", "non_tensors": [], "notes": [], **self.reply}

    def work_when_released(self, *, copies: bool) -> None:
        page, release = self.page, FlagPage.release
        assert page is not None

        def released() -> None:
            release(page)
            self.work()
            if copies:
                specs = [self.workload.sets[0].outputs[0], self.workload.state_specs["calls"]]
                for spec, tensor in zip(specs, (self.output, self.states), strict=True):
                    view(self.workload.arena.bytes, spec).copy_(tensor)

        page.release = released  # type: ignore[method-assign]

    def work(self) -> None:
        x, cache = self.workload.inputs(0)
        torch.mul(x, 2, out=self.output)
        cache += 1
        self.states += 1


class Importer:
    """Opens the memory of this process. A location with an odd offset cannot be opened."""

    def __init__(self, arena: tuple[int, int]) -> None:
        """Does nothing."""

    def address(self, place: Location, size: int) -> int:
        if place.offset % 2:
            raise BadLocation("odd")
        return place.offset

    def tidy(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class Session:
    """A workload, a process and the judge's clock for it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "problem.py"
        path.write_text(PROBLEM)
        problem = ProblemAt(path, "full", {})
        probed = run_probe(problem, CPU, False, (), report=lambda trial: None)
        assert isinstance(probed, ProbeResult)
        self.workload = Workload(problem, probed, CPU, folder)
        self.process = Process(self.workload)
        assert self.process.page is not None
        self.clock = Clock(self.process.page)
        self.outside = OutsideClock(self.workload, self.process, self.clock)  # type: ignore[arg-type]
        self.inputs, _ = self.workload.draw(0, 1, Variant.PLAIN)

    def time(self, on_host: bool = False) -> float | None:
        request = HeldRequest("hold", 0, self.inputs, ("calls",), on_host, {"set": 0})
        return self.outside.time(request, read_held)[0]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(module, "Importer", Importer)
    return Session(tmp_path)


@pytest.mark.parametrize("on_host", [False, True])
def test_all_that_a_call_writes_is_copied_between_the_stamps(session: Session, on_host: bool) -> None:
    x, cache = (tensor.clone() for tensor in session.inputs)
    assert session.time(on_host) == 0.25
    received = session.outside.received
    assert torch.equal(received.outputs[0], x * 2)
    assert torch.equal(received.inputs[1], cache + 1) and torch.equal(received.states["calls"], torch.ones(3))
    assert torch.equal(session.inputs[1], cache), "the judge's own inputs stay as they are"
    assert session.clock.steps == ["gather", "begin", "move 20", "move 16", "sweep", "release",
                                   "move 20", "move 12", "move 16", "end"]


def test_nothing_is_written_for_a_call_that_may_have_begun_by_itself(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HELD_MS", 0.0)
    before = [tensor.clone() for tensor in session.workload.inputs(0)]
    assert session.time() is None
    assert session.clock.steps == []
    assert all(map(torch.equal, before, session.workload.inputs(0)))


@pytest.mark.parametrize("on_host", [False, True])
def test_a_call_counts_whatever_its_flag_says(session: Session, on_host: bool) -> None:
    session.process.dawdles = True
    assert session.time(on_host) == 0.25


def test_an_output_in_the_judges_buffers_is_read_there(session: Session) -> None:
    session.process.places = [None, ["", session.process.states.data_ptr()]]
    spec = session.workload.sets[0].outputs[0]
    view(session.workload.arena.bytes, spec).fill_(7)
    session.time()
    assert torch.equal(session.outside.received.outputs[0], torch.full((5,), 7.0))


@pytest.mark.parametrize("places", [[], [None], [None] * 3, [None, ["", 3]]])
def test_forged_places_are_refused(session: Session, places: list[object]) -> None:
    session.process.places = places
    with pytest.raises(CandidateCheated):
        session.time()


@pytest.mark.parametrize(("begin", "inside"), [(-1, True), (0, True), (4, True), (-5, False), (5, False)])
def test_an_output_in_an_input_is_refused_unless_the_reference_gives_one(
    session: Session, begin: int, inside: bool
) -> None:
    x = session.workload.inputs(0)[0]
    assert x.numel() == 5
    session.process.places[0] = ["", x.data_ptr() + begin * x.element_size()]
    if inside:
        with pytest.raises(CandidateCheated, match="inside an input"):
            session.time()
        session.workload.probed = replace(session.workload.probed, may_alias=True)
    assert session.time() == 0.25


def test_a_failure_of_the_solution_is_raised(session: Session) -> None:
    session.process.reply = {"op": "mismatch", "message": "an output has another shape"}
    with pytest.raises(Failed, match="another shape"):
        session.time()


def test_each_call_is_received_in_memory_of_its_own(session: Session) -> None:
    session.time()
    first = session.outside.received
    session.time()
    assert first.outputs[0].data_ptr() != session.outside.received.outputs[0].data_ptr()
    assert torch.equal(first.states["calls"], torch.ones(3))


def test_the_flags_are_unmapped_at_the_end(session: Session) -> None:
    session.outside.close()
    assert session.clock.steps == ["unmap"]
