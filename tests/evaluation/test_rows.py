"""The tensors of all sets of buffers as rows of bytes."""

from __future__ import annotations

import pytest
import torch

from inlinebench.evaluation.integrity.rows import Rows
from inlinebench.wire.arena import BufferSet, TensorMeta, lay_out

CPU = torch.device("cpu")


def sets(*shapes: tuple[int, ...], count: int = 3) -> list[BufferSet]:
    """Returns buffer sets whose inputs and outputs both are float64 tensors of these shapes."""
    metas = [TensorMeta("float64", shape, torch.empty(shape, device="meta").stride()) for shape in shapes]
    made, end = [], 0
    for _ in range(count):
        specs, end = lay_out([*metas, *metas], end)
        made.append(BufferSet(tuple(specs[:len(metas)]), tuple(specs[len(metas):])))
    return made


@pytest.mark.parametrize("shapes", [[], [(0,)], [(0, 4), (0,)], [(3,)], [(2, 5), (0,)], [(0,), (7,), ()]])
def test_each_set_has_its_own_row_of_memory(shapes: list[tuple[int, ...]]) -> None:
    for rows in (Rows.inputs(sets(*shapes)), Rows.outputs(sets(*shapes))):
        memory = rows.allocate(3, CPU)
        for number in range(3):
            for tensor in rows.tensors(memory, number):
                tensor.fill_(number)
        for number in range(3):
            tensors = rows.tensors(memory, number)
            assert [tuple(tensor.shape) for tensor in tensors] == shapes
            assert all(bool((tensor == number).all()) for tensor in tensors)
