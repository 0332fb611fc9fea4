"""Indices, booleans and counts that differ from the reference's: equal values in another order are right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from .test_checks import Session

WEIGHT = "self.register_buffer('w', torch.linspace(-1, 1, 33)[:32].repeat(16).reshape(32, 16).sin())"


def equal_values() -> Tensor:
    """Returns rows in which each value occurs several times, among them many zeros."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-3, 9, (64, 100), generator=generator).clamp(min=0).float()
    return values + 0.5 * (torch.arange(64) % 2)[:, None]


def last_first(values: Tensor, count: int) -> Tensor:
    """Returns the indices of the largest values, of equal ones the last first."""
    return values.shape[-1] - 1 - values.flip(-1).sort(dim=-1, descending=True, stable=True).indices[:, :count]


@pytest.mark.parametrize(("forward", "count"), [
    ("return x.topk(7).indices", 7), ("return x.sort(descending=True).indices", 100),
    ("return x.argsort(descending=True).to(torch.int32)", 100),
])
def test_equal_values_may_come_in_any_order(tmp_path: Path, forward: str, count: int) -> None:
    session, x = Session(tmp_path, forward, "torch.randn(64, 100)"), equal_values()
    right = last_first(x, count)
    assert session.check(x, output=right) == ""
    wrong = right.clone()
    wrong[5, 1] = wrong[5, 0]
    assert "elements differ" in session.check(x, output=wrong), "an index twice"
    wrong = right.clone()
    wrong[5, 2] = int(x[5].argmin()) if count < 100 else wrong[5, 99]
    assert "elements differ" in session.check(x, output=wrong), "a smaller value"
    wrong[5, 2] = 100
    assert "elements differ" in session.check(x, output=wrong), "outside the row"


@pytest.mark.parametrize("forward", [
    "return x.argmax(-1)", "return x.max(-1).indices", "return x.argmax(-1, keepdim=True)", "return x.max(1)[1]",
])
def test_any_of_the_largest_values_may_be_the_largest(tmp_path: Path, forward: str) -> None:
    session, x = Session(tmp_path, forward, "torch.randn(64, 100)"), equal_values()
    right = last_first(x, 1).reshape(session.workload.outputs(0)[0].shape)
    assert session.check(x, output=right) == ""
    wrong = right.clone()
    wrong.view(-1)[9] = int(x[9].argmin())
    assert "1 of 64 elements differ" in session.check(x, output=wrong)


def test_the_largest_of_all_elements_may_be_any_of_the_largest(tmp_path: Path) -> None:
    session, x = Session(tmp_path, "return x.argmax()", "torch.randn(64, 100)"), equal_values()
    places = (x == x.max()).flatten().nonzero().flatten()
    assert len(places) > 1 and all(session.check(x, output=place) == "" for place in places)
    assert "its one element differs" in session.check(x, output=x.argmin())


def test_values_that_differ_by_rounding_count_as_equal(tmp_path: Path) -> None:
    """The keys are sums, which a solution computes with other rounding errors."""
    session = Session(tmp_path, "return (x @ self.w).argmax(-1)", "torch.randn(64, 32)", WEIGHT)
    x = torch.randn(64, 32)
    keys = x.double() @ session.reference.w.double()
    second = keys.topk(2).indices[:, 1]
    assert "64 of 64" not in session.check(x)
    assert "elements differ" in session.check(x, output=second)


@pytest.mark.parametrize("forward", ["return (x @ self.w) > 0", "return torch.floor(x @ self.w).to(torch.int64)"])
def test_a_comparison_may_go_the_other_way_where_rounding_decides_it(tmp_path: Path, forward: str) -> None:
    session = Session(tmp_path, forward, "torch.randn(64, 32)", WEIGHT)
    x = torch.randn(64, 32)
    column = session.reference.w[:, 3].double()
    x[7] = (x[7].double() - (x[7].double() @ column) / (column @ column) * column).float()  # 0 but for rounding
    right = session.reference(x)
    assert session.check(x, output=right) == ""
    for row, passes in ((7, True), (8, False)):
        other = right.clone()
        # A floor that rounding decides is 0 or -1.
        other[row, 3] = ~other[row, 3] if other.dtype is torch.bool else -1 - other[row, 3]
        assert (session.check(x, output=other) == "") is passes
