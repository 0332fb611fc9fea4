"""Calls in a loop, and held calls: the outputs that the judge gets, and those that a later call has overwritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from inlinebench.candidate.calls import COPIED, Caller, CallForm, OutputMismatch
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.wire.arena import BufferSet, TensorMeta, TensorSpec, lay_out, view
from inlinebench.wire.locations import Location
from inlinebench.wire.tree import flatten

CALLS = 3


class Clock(CpuClock):
    """A clock that holds calls. `steps` has what it did."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    def hold(self) -> None:
        self.steps.append("hold")

    def wait_for_release(self, announce: Callable[[], None]) -> None:
        announce()
        self.steps.append("released")

    def done(self) -> None:
        self.steps.append("done")

    def release(self) -> None:
        self.steps.append("release")

    def synchronize(self) -> None:
        self.steps.append("synchronize")


class Exporter:
    """Locates what does not begin at `unshareable`."""

    unshareable = 0

    def locate(self, address: int) -> Location | None:
        return None if address == self.unshareable else Location("", address)


class Model(torch.nn.Module):
    def __init__(self, forward: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.forward = forward  # type: ignore[method-assign]


def made(
    forward: Callable[[torch.Tensor], torch.Tensor], copied_to: torch.device | None = None
) -> tuple[Caller, torch.Tensor, list[BufferSet]]:
    """Returns a caller, its memory, and three sets of buffers in it, with inputs of ones, twos and threes."""
    meta, sets, end = TensorMeta.of(torch.zeros(4)), list[BufferSet](), 0
    for _ in range(CALLS):
        inputs, end = lay_out([meta], end)
        outputs, end = lay_out([meta], end)
        sets.append(BufferSet(tuple(inputs), tuple(outputs)))
    arena = torch.zeros(end, dtype=torch.uint8)
    for number, buffers in enumerate(sets):
        view(arena, buffers.inputs[0]).fill_(number + 1)

    form = CallForm(flatten((torch.zeros(4),))[0], (True,), flatten(torch.zeros(4))[0], (True,), tuple(sets), {}, False)
    return Caller(Model(forward), Clock(), arena, form, copied_to), arena, sets


def looped(forward: Callable[[torch.Tensor], torch.Tensor]) -> tuple[list[bool], list[torch.Tensor]]:
    """Makes a call on each set. Returns which outputs were overwritten, and the outputs."""
    caller, arena, sets = made(forward)
    held: list[str] = []
    _, written_over = caller.loop([((), None)] * CALLS, lambda: held.append("held"))
    assert held == ["held"]
    return written_over, [view(arena, buffers.outputs[0]).clone() for buffers in sets]


def values(tensors: list[torch.Tensor]) -> list[float]:
    return [float(tensor[0]) for tensor in tensors]


def test_new_output_tensors_are_all_copied_to_the_judge() -> None:
    written_over, outputs = looped(lambda x: x * 2)
    assert (written_over, values(outputs)) == ([False] * CALLS, [2.0, 4.0, 6.0])


def test_a_reused_output_buffer_contains_only_the_last_output() -> None:
    buffer = torch.empty(4)
    written_over, outputs = looped(lambda x: torch.mul(x, 2, out=buffer))
    assert written_over == [True, True, False]
    assert float(outputs[-1][0]) == 6.0


def test_two_alternating_output_buffers_contain_the_last_two_outputs() -> None:
    buffers, turn = [torch.empty(4), torch.empty(4)], iter(range(CALLS))
    written_over, outputs = looped(lambda x: torch.mul(x, 2, out=buffers[next(turn) % 2]))
    assert (written_over, values(outputs)[1:]) == ([True, False, False], [4.0, 6.0])


def test_an_output_of_another_shape_is_a_mismatch() -> None:
    with pytest.raises(OutputMismatch, match="shape"):
        looped(lambda x: x[:2] * 2)


def test_a_call_reads_and_writes_the_set_with_its_number() -> None:
    caller, arena, sets = made(lambda x: x * 10)
    for number in (2, 0):
        caller.call((), 0, 0.0, number)
    assert values([view(arena, buffers.outputs[0]) for buffers in sets]) == [10.0, 0.0, 30.0]


def test_a_held_call_says_where_its_outputs_are_and_copies_none() -> None:
    result = torch.empty(4)
    caller, arena, sets = made(lambda x: torch.mul(x, 10, out=result))
    caller._locator = Exporter()
    told: list[object] = []
    caller.hold((), 0, 1, False, told.append)
    assert told == [[Location("", result.data_ptr())]]
    assert not view(arena, sets[1].outputs[0]).any() and not caller.notes and values([result]) == [20.0]
    clock = caller._clock
    assert isinstance(clock, Clock)
    assert clock.steps == ["hold", "done", "synchronize"]


def test_a_call_that_is_held_on_the_host_copies_its_outputs_before_it_is_done() -> None:
    caller, arena, sets = made(lambda x: x * 10)
    told: list[object] = []
    caller.hold((), 0, 1, True, told.append)
    assert told == [None] and values([view(arena, sets[1].outputs[0])]) == [20.0]
    clock = caller._clock
    assert isinstance(clock, Clock) and clock.steps == ["synchronize", "released", "done", "synchronize"]


@pytest.mark.parametrize(("on_host", "states", "seen"), [
    (True, (), [2.0, 5.0]), (True, ("count",), [5.0]), (False, (), [2.0]),
])
def test_a_call_is_made_before_one_that_is_held_on_the_host_unless_it_would_change_states(
    on_host: bool, states: tuple[str, ...], seen: list[float]
) -> None:
    given: list[float] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        given.append(float(x[0]))
        return x * 10

    caller, arena, sets = made(forward)
    caller._locator = Exporter()
    caller._model.register_buffer("count", torch.zeros(4))
    caller._form = replace(caller._form, states=dict.fromkeys(states, sets[0].outputs[0]))
    caller.hold((), 0, 1, on_host, lambda places: view(arena, sets[1].inputs[0]).fill_(5.0))  # as the judge does
    assert given == seen


def test_a_held_call_copies_what_cannot_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    result = torch.empty(4)
    monkeypatch.setattr(Exporter, "unshareable", result.data_ptr())
    caller, arena, sets = made(lambda x: torch.mul(x, 10, out=result))
    caller._locator = Exporter()
    told: list[object] = []
    caller.hold((), 0, 1, False, told.append)
    assert told == [[None]]
    assert values([view(arena, sets[1].outputs[0])]) == [20.0] and caller.notes == {COPIED}


@pytest.mark.parametrize(("on_host", "steps"), [
    (False, ["hold", "release"]), (True, ["synchronize", "released", "done", "release"]),
])
def test_a_held_call_that_raises_keeps_nobody_waiting(on_host: bool, steps: list[str]) -> None:
    caller, _, _ = made(lambda x: x[:2])
    with pytest.raises(OutputMismatch, match="shape"):
        caller.hold((), 0, 0, on_host, lambda places: None)
    clock = caller._clock
    assert isinstance(clock, Clock) and clock.steps == steps


def test_buffer_sets_survive_the_conversion_to_json() -> None:
    spec = TensorSpec("float32", (4,), (1,), 512)
    assert BufferSet.from_json(BufferSet((spec,), ()).to_json()) == BufferSet((spec,), ())


def test_copies_of_inputs_alternate_between_new_and_reused_memory() -> None:
    seen = list[tuple[int, float]]()

    def forward(x: torch.Tensor) -> torch.Tensor:
        seen.append((x.data_ptr(), float(x[0])))
        return x * 10

    caller, arena, sets = made(forward, copied_to=torch.device("cpu"))
    for number in range(4):
        view(arena, sets[0].inputs[0]).fill_(number)
        caller.call((), 0, 0.0)
        assert float(view(arena, sets[0].outputs[0])[0]) == number * 10
    (one, first), (two, second), (three, third), (four, fourth) = seen
    assert (first, second, third, fourth) == (0.0, 1.0, 2.0, 3.0)
    assert one == two != three == four
