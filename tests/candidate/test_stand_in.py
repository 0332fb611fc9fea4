from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
import torch

from inlinebench.candidate.stand_in import StandIn
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.wire.arena import BufferSet, TensorMeta, lay_out
from inlinebench.wire.locations import Location

INPUTS = [TensorMeta("float32", (3,), (1,)), TensorMeta("int64", (100,), (1,))]
OUTPUTS = [TensorMeta("float32", (5,), (1,)), TensorMeta("float16", (0,), (1,))]


class Clock(CpuClock):
    """A clock whose stand-in fills the outputs with ones, and which records what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[int, int]] = []

    def stand_in(self, inputs: int, input_bytes: int, outputs: int, output_bytes: int) -> None:
        self.read.append((inputs, input_bytes))
        ctypes.memset(outputs, 1, output_bytes)

    def hold(self) -> None:
        """Does nothing."""

    def wait_for_release(self, announce: Callable[[], None]) -> None:
        announce()

    def synchronize(self) -> None:
        """Does nothing."""


class Addresses:
    """Gives addresses as offsets."""

    def locate(self, address: int) -> Location:
        return Location("", address)


@pytest.mark.parametrize("on_host", [False, True])
def test_it_reads_the_inputs_of_its_set_and_says_where_it_writes_outputs_and_states(on_host: bool) -> None:
    states, end = lay_out([TensorMeta("float32", (7,), (1,))])
    sets = []
    for _ in range(2):
        inputs, middle = lay_out(INPUTS, end)
        outputs, end = lay_out(OUTPUTS, middle)
        sets.append(BufferSet(tuple(inputs), tuple(outputs)))
    arena, clock, told = torch.zeros(end, dtype=torch.uint8), Clock(), list[object]()
    stand_in = StandIn(clock, arena, Addresses(), sets[0], states)  # type: ignore[arg-type]
    assert stand_in.alone().blocked
    stand_in.buffers = sets[1]
    stand_in.hold(on_host, told.append)
    places = list(stand_in._places())
    assert told == [None if on_host else places]
    regions = [(arena.data_ptr() + each.inputs[0].offset, 512 + 1024) for each in sets]
    assert clock.read == [regions[0], regions[0], regions[1]]
    assert not arena.any()
    assert [place is None for place in places] == [False, True, False], "an empty output is nowhere"
    for place, size in zip(places, (20, 0, 28), strict=True):
        assert place is None or ctypes.string_at(place.offset, size) == b"\1" * size


def test_a_call_without_inputs_or_outputs_is_possible() -> None:
    arena, clock = torch.zeros(512, dtype=torch.uint8), Clock()
    told: list[object] = []
    StandIn(clock, arena, Addresses(), BufferSet((), ()), []).hold(False, told.append)  # type: ignore[arg-type]
    assert clock.read[-1] == (arena.data_ptr(), 0) and told == [[]]
