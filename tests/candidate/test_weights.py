from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from inlinebench.candidate.weights import Match, match, materialize, transfer

Tensors = dict[str, Tensor]


class Holder(nn.Module):
    """A module with given parameters and buffers. A dot in a name creates a submodule."""

    def __init__(self, parameters: Tensors, buffers: Tensors | None = None) -> None:
        super().__init__()
        for name, tensor in parameters.items():
            self._parent(name).register_parameter(name.rpartition(".")[2], nn.Parameter(tensor.clone(), False))
        for name, tensor in (buffers or {}).items():
            self._parent(name).register_buffer(name.rpartition(".")[2], tensor.clone())

    def _parent(self, name: str) -> nn.Module:
        parent: nn.Module = self
        for part in name.split(".")[:-1]:
            if not hasattr(parent, part):
                parent.add_module(part, nn.Module())
            parent = getattr(parent, part)
        return parent


def matched(own: Tensors, reference: Tensors) -> Match:
    return match(Holder(own), reference, {})


def a(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_tensors_match_by_full_name() -> None:
    found = matched({"fc.weight": a(1, 3, 3), "fc.bias": a(2, 3)}, {"fc.weight": a(3, 3, 3), "fc.bias": a(4, 3)})
    assert found.parameters == {"fc.weight": "fc.weight", "fc.bias": "fc.bias"}
    assert found.how == "by name"


def test_tensors_of_equal_names_but_other_shapes_or_dtypes_do_not_match() -> None:
    assert matched({"weight": a(1, 3)}, {"weight": a(2, 4)}).parameters == {}
    assert matched({"weight": a(1, 3)}, {"weight": a(1, 3).double()}).parameters == {}


def test_tensors_match_by_a_unique_last_name() -> None:
    found = matched({"mine.weight": a(1, 3), "mine.bias": a(2, 3)}, {"bn.bias": a(3, 3), "bn.weight": a(4, 3)})
    assert found.parameters == {"mine.weight": "bn.weight", "mine.bias": "bn.bias"}
    assert found.how == "by last name"


def test_tensors_do_not_match_by_a_last_name_that_is_not_unique() -> None:
    own = {"one.weight": a(1, 3), "two.bias": a(2, 4)}
    reference = {"x.weight": a(3, 3), "y.weight": a(4, 3), "z.other": a(5, 5)}
    assert matched(own, reference).parameters == {}


def test_tensors_match_by_a_unique_value() -> None:
    found = matched({"gamma": torch.ones(3), "beta": torch.zeros(3)}, {"bias": torch.zeros(3), "weight": torch.ones(3)})
    assert found.parameters == {"gamma": "weight", "beta": "bias"}
    assert found.how == "by value"


def test_tensors_do_not_match_by_a_value_that_is_not_unique() -> None:
    own = {"p": torch.ones(3), "q": a(9, 2)}
    reference = {"x": torch.ones(3), "y": torch.ones(3), "z": a(8, 4)}
    assert matched(own, reference).parameters == {}


def test_tensors_match_by_order_if_the_rest_has_the_same_shapes_in_the_same_order() -> None:
    found = matched({"p": a(1, 3), "q": a(2, 3)}, {"x": a(3, 3), "y": a(4, 3)})
    assert (found.parameters, found.how) == ({"p": "x", "q": "y"}, "by order")


def test_tensors_match_by_a_unique_shape_in_any_order() -> None:
    found = matched({"q": a(2, 3), "p": a(1, 3, 2)}, {"x": a(3, 3, 2), "y": a(4, 3)})
    assert (found.parameters, found.how) == ({"p": "x", "q": "y"}, "by shape")


def test_tensors_keep_their_values_if_neither_shape_nor_order_is_unambiguous() -> None:
    own = {"p": a(1, 3), "q": a(2, 3), "r": a(3, 4), "s": a(4, 4)}
    reference = {"w": a(5, 4), "x": a(6, 4), "y": a(7, 3), "z": a(8, 3)}
    found = matched(own, reference)
    assert (found.parameters, found.how) == ({}, "the solution's own values")


def test_the_description_lists_all_criteria_and_the_number_of_unmatched_parameters() -> None:
    own = {"fc.weight": a(1, 2), "gamma": torch.ones(3), "extra": a(5, 7)}
    found = matched(own, {"fc.weight": a(2, 2), "bn.weight": torch.ones(3)})
    assert found.parameters == {"fc.weight": "fc.weight", "gamma": "bn.weight"}
    assert found.how == "by name, by value; 1 kept the solution's own values"


def test_parameters_and_buffers_are_matched_separately() -> None:
    own = Holder({"scale": torch.ones(3)}, {"mean": torch.zeros(3), "count": torch.tensor(0)})
    found = match(own, {"weight": torch.ones(3)}, {"running_mean": torch.zeros(3), "running_var": torch.ones(3)})
    assert (found.parameters, found.buffers) == ({"scale": "weight"}, {"mean": "running_mean"})


def test_an_integer_buffer_matches_only_by_its_name() -> None:
    own = Holder({}, {"bn.num_batches_tracked": torch.tensor(0), "steps": torch.tensor(7)})
    found = match(own, {}, {"bn.num_batches_tracked": torch.tensor(0), "count": torch.tensor(7)})
    assert found.buffers == {"bn.num_batches_tracked": "bn.num_batches_tracked"}


def test_the_description_says_if_there_is_nothing_to_match() -> None:
    assert match(Holder({}), {}, {}).how == "none to match"


def test_transfer_copies_only_matched_tensors_and_in_place() -> None:
    own = Holder({"w": a(1, 3), "own": a(2, 5)}, {"m": torch.zeros(2)})
    before = own.w
    reference = {"w": a(3, 3)}
    transfer(own, match(own, reference, {"m": torch.ones(2)}), reference, {"m": torch.ones(2)})
    assert own.w is before and torch.equal(own.w, reference["w"])
    assert torch.equal(own.own, a(2, 5)) and torch.equal(own.m, torch.ones(2))


class PacksLazily(nn.Module):
    """Its buffers begin as zeros, and are packed again when one has changed or moved. It may also pack beforehand."""

    def __init__(self, early: bool) -> None:
        super().__init__()
        self.register_buffer("codes", torch.zeros(4, dtype=torch.uint8))
        self.register_buffer("scales", torch.zeros(4, dtype=torch.bfloat16))
        self.key: object = None
        if early:
            self.packed()

    def packed(self) -> Tensor:
        key = [(tensor.data_ptr(), tensor._version, tensor.device) for tensor in self.buffers()]
        if key != self.key:
            self.key, self.result = key, self.get_buffer("codes").float() * self.get_buffer("scales").float()
        return self.result


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("moves", [lambda model: model, lambda model: model.to("cpu"), lambda model: model.double()])
def test_a_transfer_shows_in_buffers_that_are_packed_when_they_change(
    early: bool, moves: Callable[[nn.Module], nn.Module]
) -> None:
    reference = {"codes": torch.arange(1, 5, dtype=torch.uint8), "scales": torch.full((4,), 0.5, dtype=torch.bfloat16)}
    own = PacksLazily(early)
    transfer(own, match(own, {}, reference), {}, reference)
    moves(own)
    assert torch.equal(own.packed(), torch.tensor([0.5, 1.0, 1.5, 2.0]))


def test_lazy_parameters_get_the_shapes_and_values_of_the_reference_s_of_their_names() -> None:
    reference = nn.Linear(3, 2)
    parameters = {name: tensor.detach() for name, tensor in reference.named_parameters()}
    own = nn.LazyLinear(2)
    materialize(own, parameters, {})
    transfer(own, match(own, parameters, {}), parameters, {})
    x = torch.randn(4, 3)
    assert torch.equal(own(x), reference(x))


def test_lazy_parameters_without_a_counterpart_stay_lazy() -> None:
    parameters = {"other.weight": a(1, 2, 3), "other.bias": a(2, 2)}
    own = nn.LazyLinear(2)
    materialize(own, parameters, {})
    found = match(own, parameters, {})
    assert own.has_uninitialized_params() and found.parameters == {}
    assert own(a(3, 4, 3)).shape == (4, 2)
