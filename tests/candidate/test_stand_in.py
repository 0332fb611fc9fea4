from __future__ import annotations

import ctypes

import torch

from inlinebench.candidate.stand_in import StandIn
from inlinebench.timing.cpu import CpuClock
from inlinebench.wire.arena import BufferSet, TensorMeta, lay_out, view

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


def test_it_reads_the_inputs_and_writes_the_outputs_and_states_of_each_set() -> None:
    states, end = lay_out([TensorMeta("float32", (7,), (1,))])
    sets = []
    for _ in range(3):
        inputs, middle = lay_out(INPUTS, end)
        outputs, end = lay_out(OUTPUTS, middle)
        sets.append(BufferSet(tuple(inputs), tuple(outputs)))
    arena, clock, queued = torch.zeros(end, dtype=torch.uint8), Clock(), list[str]()
    stand_in = StandIn(clock, arena, sets, states)  # type: ignore[arg-type]
    assert stand_in.alone().blocked
    assert stand_in.batch(500.0, lambda: queued.append("queued")).blocked and queued == ["queued"]
    regions = [(arena.data_ptr() + each.inputs[0].offset, 512 + 1024) for each in sets]
    assert clock.read == [regions[0], regions[0], *regions]
    written = [*states, *(spec for each in sets for spec in each.outputs)]
    assert all(bool((view(arena, spec).view(torch.uint8) == 1).all()) for spec in written)
    assert int(arena.sum()) == sum(spec.bytes for spec in written), "nothing else is written"


def test_a_call_without_inputs_or_outputs_is_possible() -> None:
    arena, clock = torch.zeros(512, dtype=torch.uint8), Clock()
    StandIn(clock, arena, [BufferSet((), ())], []).batch(500.0, lambda: None)  # type: ignore[arg-type]
    assert clock.read[-1] == (arena.data_ptr(), 0)
