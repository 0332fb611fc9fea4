"""A reference that computes calls again, also if its first call makes a buffer."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn

from inlinebench.problem.forward import InputForm
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.wire.tree import flatten

CPU = torch.device("cpu")
X = torch.ones(4)


class Sums(nn.Module):
    """Adds up its inputs in a buffer that its first call makes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "total"):
            self.register_buffer("total", torch.zeros_like(x))
        self.total: torch.Tensor = self.total + x
        return self.total.clone()


def copy_of(make: Callable[[], nn.Module], *, double: bool = False) -> ReferenceCopy:
    skeleton, _ = flatten([X])
    return ReferenceCopy(make, InputForm(skeleton, (True,)), CPU, double=double)


def test_a_buffer_that_the_first_call_makes_is_carried_over() -> None:
    copy = copy_of(Sums)
    first = copy.run({}, [X], [], 0)
    assert first is not None and torch.equal(first.output.tensors[0], X)
    later = copy.run({"total": 5 * X}, [X], [], 0)
    assert later is not None and torch.equal(later.output.tensors[0], 6 * X)
    assert torch.equal(later.states["total"], 6 * X)


def test_the_first_call_can_be_computed_again_although_it_makes_a_buffer() -> None:
    copy = copy_of(Sums)
    for _ in range(2):
        found = copy.run({}, [X], [], 0)
        assert found is not None and torch.equal(found.output.tensors[0], X)


def test_a_later_call_can_be_computed_without_the_first_one() -> None:
    found = copy_of(Sums).run({"total": 5 * X}, [X], [], 0)
    assert found is not None and torch.equal(found.output.tensors[0], 6 * X)


def test_states_are_given_in_any_dtype() -> None:
    copy = copy_of(lambda: nn.BatchNorm1d(4), double=True)
    states = {"running_mean": X, "running_var": X, "num_batches_tracked": torch.tensor(3)}
    found = copy.run(states, [torch.randn(8, 4)], [], 0)
    assert found is not None and found.states["num_batches_tracked"] == 4
    assert found.states["running_mean"].dtype is torch.float64


def test_weights_are_replaced_for_one_call_only() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(4, 4, bias=False)
    copy = copy_of(lambda: deepcopy(linear))
    weight = copy.weights()["weight"].clone()
    for given, factor in (({"weight": 2 * weight}, 2.0), ({}, 1.0)):
        found = copy.run({}, [X], [], 0, given)
        assert found is not None and torch.allclose(found.output.tensors[0], factor * X @ weight.T)
