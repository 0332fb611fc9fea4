from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.wire.tree import LEAF, describe, flatten, merge, same_structure, unflatten

Point = namedtuple("Point", "x y")
nestings = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(), inner, max_size=3),
)


@given(nestings)
def test_flatten_and_unflatten_round_trip(value: Any) -> None:
    skeleton, leaves = flatten(value)
    assert unflatten(skeleton, leaves) == value
    assert same_structure(skeleton, skeleton)


def test_named_tuples_of_torch_become_tuples() -> None:
    skeleton, leaves = flatten(torch.max(torch.tensor([[1.0, 3.0, 2.0]]), dim=1))
    assert skeleton == (LEAF, LEAF) and [leaf.item() for leaf in leaves] == [3.0, 1]


def test_leaves_are_in_order() -> None:
    assert flatten([1, (2, {"b": 3, "a": [4]}), ()])[1] == [1, 2, 4, 3]  # dicts in the order of their keys as text


def test_a_named_tuple_becomes_a_tuple() -> None:
    skeleton, leaves = flatten(Point(1, 2))
    assert (leaves, same_structure(skeleton, flatten((1, 2))[0])) == ([1, 2], True)


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_leaves_raises(leaves: list[int]) -> None:
    with pytest.raises(ValueError, match="leaves"):
        unflatten((LEAF, [LEAF]), leaves)


def test_tensors_and_non_tensors_are_merged_in_order() -> None:
    assert merge([True, False, True], ["t1", "t2"], [1]) == ["t1", 1, "t2"]
    with pytest.raises(ValueError):
        merge([True, True], ["t1"], [1])


@pytest.mark.parametrize(("one", "other", "alike"), [
    ((1, 2), [3, 4], True), ((1, 2), (1,), False), (1, (1,), False), ({"a": 1}, {"a": 2}, True),
    ({"a": 1}, {"b": 1}, False), ({"a": 1}, [1], False), ((1, (2, 3)), (1, 2, 3), False), ((), (), True),
])
def test_structures_are_compared_without_values(one: Any, other: Any, alike: bool) -> None:
    assert same_structure(flatten(one)[0], flatten(other)[0]) is alike
    assert same_structure(flatten(other)[0], flatten(one)[0]) is alike


def test_nested_values_are_described_for_messages() -> None:
    assert [describe(flatten(value)[0]) for value in (1, (1, 2), [1], {"a": 1})] == [
        "one value", "tuple of 2", "list of 1", "dict of 1"]
