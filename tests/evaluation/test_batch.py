"""Which problems have a batch: their rows can be moved, and the first can be alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.evaluation.batch import Batch, find_batch
from inlinebench.evaluation.draws import Drawn, Draws
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload

from .workloads import workload_of

ROWS = "[torch.rand(6, 8), torch.rand(8)]"
BOTH = "[torch.rand(6, 8), torch.rand(6, 8)]"
SQUARE = "[torch.rand(6, 6), torch.rand(6, 6)]"


def found_in(workload: Workload) -> tuple[Batch | None, Drawn]:
    call = Draws(workload, 1, "batch").next(variant=Variant.PLAIN)
    before = [tensor.clone() for tensor in call.tensors]
    found = find_batch(workload, call, 7)
    assert all(map(torch.equal, before, call.tensors)), "the inputs are as they were"
    return found, call


@pytest.mark.parametrize(("forward", "inputs", "batch"), [
    ("return x * y", ROWS, (0,)),
    ("return (x * y).sum(dim=1), x.exp()", ROWS, (0,)),
    ("return x * y", BOTH, (0, 1)),
    ("return x @ y", SQUARE, (0,)),  # rows of y are no rows of the batch
    ("return torch.einsum('ij,j->i', x, y)", ROWS, (0,)),
], ids=repr)
def test_rows_that_are_computed_alone_are_a_batch(
    tmp_path: Path, forward: str, inputs: str, batch: tuple[int, ...]
) -> None:
    found, call = found_in(workload_of(tmp_path, forward, inputs))
    assert found is not None and found.inputs == batch and found.alone is not None
    assert [spec.shape[0] for spec in found.alone.outputs] == [1] * len(found.alone.outputs)
    firsts = found.first(call.tensors)
    assert [tensor.shape[0] == 1 for tensor in firsts] == [index in batch for index in range(2)]


@pytest.mark.parametrize(("forward", "inputs"), [
    ("return x.softmax(dim=0) * y", ROWS),
    ("return x - x.mean(dim=0)", ROWS),
    ("return (x * y).sum()", ROWS),
    ("return (x * y).sum(dim=0)", ROWS),
    ("return x.cumsum(dim=0)", ROWS),
    ("return x * y, x.sum(dim=0)", ROWS),
    ("return x[:1] * y", ROWS),
    ("return x * y", "[torch.rand(1, 8), torch.rand(8)]"),
    ("x += y; return x * 1", ROWS),
    ("return torch.nn.functional.dropout(x, 0.5)", ROWS),
], ids=repr)
def test_other_problems_have_none(tmp_path: Path, forward: str, inputs: str) -> None:
    assert found_in(workload_of(tmp_path, forward, inputs))[0] is None


@pytest.mark.parametrize(("forward", "inputs"), [
    ("return x.view(6, 2, 4).sum(dim=1) * y[:4]", ROWS),
    ("return y[x]", "[torch.randint(8, (6,)), torch.rand(8)]"),
    ("return x * y", "[torch.rand(8, 6).T, torch.rand(8)]"),
], ids=["the number of rows is written", "integers may be positions", "rows are no blocks of memory"])
def test_a_row_is_not_tried_alone_where_that_may_fail(tmp_path: Path, forward: str, inputs: str) -> None:
    found, _ = found_in(workload_of(tmp_path, forward, inputs))
    assert found is not None and found.inputs == (0,) and found.alone is None


@pytest.mark.parametrize("rows", [2, 3, 50])
def test_no_row_keeps_its_place(tmp_path: Path, rows: int) -> None:
    found, call = found_in(workload_of(tmp_path, "return x * y", f"[torch.rand({rows}, 8), torch.rand(8)]"))
    assert found is not None
    before = call.tensors[0].clone()
    assert found.order.sort().values.tolist() == list(range(rows))
    assert not (found.order == torch.arange(rows)).any()
    assert torch.equal(found.moved(call).tensors[0], before[found.order])


def test_the_first_row_goes_through_the_shared_memory(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, "return x * y")
    found, call = found_in(workload)
    assert found is not None and found.alone is not None
    found.hand_over_first(workload, call.tensors)
    assert torch.equal(workload.inputs(0)[0][:1], call.tensors[0][:1])
    (output,) = found.receive_first(workload)
    assert output.shape == (1, 8) and output.isnan().all(), "what the solution doesn't write shows"
