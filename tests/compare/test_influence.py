"""What is said about the values that a solution uses, for functions that play the reference and the solution."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from inlinebench.compare.influence import Influence, Part, explains, from_index, influence, parts

Function = Callable[[Tensor], Tensor]
X = torch.randn(32, 48, generator=torch.Generator().manual_seed(1))


def changed(part: Part, reference: Function, solution: Function, x: Tensor = X) -> Influence:
    other = part.replaced(x)
    return influence((reference(x), reference(other)), (solution(x), solution(other)))


def said(part: Part, reference: Function, solution: Function, x: Tensor = X) -> str | None:
    return changed(part, reference, solution, x).describe(part)


def all_parts() -> list[Part]:
    return [from_index(0, 1, X, 0), from_index(0, 1, X, 47), *parts(0, 0, X), *parts(0, 1, X)]


def test_parts_are_named_by_their_indices() -> None:
    assert str(from_index(2, 1, X, 0)) == "input 2"
    assert str(from_index(0, 1, X, 40)) == "columns >= 40 of input 0"
    assert list(map(str, parts(0, 0, X)))[0::4] == ["every 2nd row (1, 3, 5, ...) of input 0", "rows >= 16 of input 0"]
    assert str(list(parts(0, 0, X))[-1]) == "row 16 of input 0"


def test_only_the_part_is_replaced_and_by_values_of_the_tensor() -> None:
    found = from_index(0, 1, X, 40).replaced(X)
    assert torch.equal(found[:, :40], X[:, :40]) and not (found[:, 40:] == X[:, 40:]).any()
    assert torch.isin(found, X).all()
    labels = torch.arange(12).reshape(3, 4)
    assert from_index(0, 0, labels, 1).replaced(labels).dtype == torch.int64


@pytest.mark.parametrize(("solution", "part", "expected"), [
    (lambda x: x[:, ::2].sum(1), 0, "every 2nd column (1, 3, 5, ...) of input 0"),
    (lambda x: x.reshape(32, 3, 16)[:, :, :8].sum((1, 2)), 3, "columns from 8 to 15 of every 16 of input 0"),
])
def test_indices_that_the_solution_does_not_use_are_named(solution: Function, part: int, expected: str) -> None:
    found = said(list(parts(0, 1, X))[part], lambda x: x.sum(1), solution)
    assert found == f"the output doesn't depend on {expected}, but the reference's does".replace("from 8 to", "8 to")


def test_an_end_that_the_solution_does_not_use_is_named() -> None:
    found = said(from_index(0, 1, X, 32), lambda x: x.sum(1), lambda x: x[:, :32].sum(1))
    assert found == "the output doesn't depend on columns >= 32 of input 0, but the reference's does"


def test_rows_that_go_to_other_rows_are_named() -> None:
    found = said(list(parts(0, 0, X))[-1], torch.exp, lambda x: x.exp().roll(1, 0))
    assert found == "row 16 of input 0 decides row 17 of the output, but row 16 of the reference's"


def test_what_depends_on_too_much_is_named() -> None:
    found = said(next(parts(0, 0, X)), lambda x: x.softmax(1), lambda x: x.softmax(0))
    assert found == ("every 2nd row (0, 2, 4, ...) of the output depends on every 2nd row (1, 3, 5, ...) of input 0, "
                     "but the reference's doesn't")


@pytest.mark.parametrize("reference", [
    torch.exp, lambda x: x.softmax(1), lambda x: x.amax(1), lambda x: x.sum(), lambda x: x @ x.T, lambda x: x.argmax(1),
    lambda x: (100 * x).softmax(1), lambda x: x.cumsum(1), lambda x: x > 0,
])
@pytest.mark.parametrize("error", [lambda y: y, lambda y: y * 3, lambda y: y + 1, lambda y: (y.double() * 1.0001)])
def test_nothing_is_said_if_the_same_values_are_used(reference: Function, error: Function) -> None:
    for part in all_parts():
        assert said(part, reference, lambda x: error(reference(x))) is None


@pytest.mark.parametrize("reference", [lambda x: x.amax(1), lambda x: (100 * x).softmax(1), lambda x: x.relu()])
def test_nothing_is_said_if_values_decide_what_an_element_depends_on(reference: Function) -> None:
    for part in all_parts():
        found = said(part, reference, lambda x: reference(x).clamp(max=0.5))
        assert found is None or "decides" not in found


def test_rounding_is_not_a_dependence() -> None:
    found = changed(list(parts(0, 0, X))[-1], torch.exp, lambda x: x.exp() * (1 + 1e-7 * x.sum()))
    assert not found.gained.any() and not found.none_left


def test_nan_that_stays_nan_says_nothing() -> None:
    found = changed(from_index(0, 1, X, 0), torch.exp, lambda x: x.exp() * torch.nan)
    assert not found.lost.any() and not found.gained.any()


class TestExplanations:
    W = torch.randn(48, 48, generator=torch.Generator().manual_seed(2))

    def test_an_output_that_another_weight_gives_is_explained(self) -> None:
        assert explains(X @ self.W.T, X @ self.W, X @ self.W.T.contiguous())

    def test_an_output_that_only_comes_nearer_is_not_explained(self) -> None:
        assert not explains(X @ self.W, X @ self.W.T, X @ self.W * 1.01)
        assert not explains(X @ self.W, X @ self.W, X @ self.W)

    def test_another_shape_or_whole_numbers_explain_nothing(self) -> None:
        assert not explains(X, X + 1, X.T)
        assert not explains(X.long(), X.long() + 1, X.long())
