"""Flattens nested arguments and outputs (tuples, lists, dicts) into leaves, and puts them together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Leaf:
    """Marks the position of a leaf in a skeleton."""


LEAF = Leaf()


def flatten(value: Any) -> tuple[Any, list[Any]]:
    """Returns the skeleton of a nested value and its leaves in order. Dicts are ordered by their keys as text."""
    leaves: list[Any] = []
    return _take(value, leaves), leaves


def unflatten(skeleton: Any, leaves: list[Any]) -> Any:
    """Returns the nested value with these leaves. Raises ValueError if their number does not match the skeleton."""
    supply = iter(leaves)
    try:
        value = _put(skeleton, supply)
    except StopIteration:
        raise ValueError(f"too few leaves: {len(leaves)}") from None
    if next(supply, LEAF) is not LEAF:
        raise ValueError(f"too many leaves: {len(leaves)}")
    return value


def merge(is_tensor: Sequence[bool], tensors: Iterable[Any], non_tensors: Iterable[Any]) -> list[Any]:
    """Merges tensors and non-tensor leaves in order. Raises ValueError if there are too few."""
    supplies = {True: iter(tensors), False: iter(non_tensors)}
    try:
        return [next(supplies[kind]) for kind in is_tensor]
    except StopIteration:
        raise ValueError("too few leaves") from None


def plain(leaf: Any) -> Any:
    """Converts a NumPy scalar to a Python number. Returns other leaves unchanged."""
    return leaf.item() if type(leaf).__module__ == "numpy" and getattr(leaf, "shape", None) == () else leaf


def same_structure(one: Any, other: Any) -> bool:
    """Whether two skeletons have the same structure. A list may stand for a tuple."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_structure(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_structure, one, other))
    return isinstance(one, Leaf) and isinstance(other, Leaf)


def structure_differs(value: Any, skeleton: Any, expected: Any) -> str:
    """Says how the structure of an output differs from the reference's, or "" if it does not.

    `skeleton` is that of `value`, and `expected` is the reference's.
    """
    if same_structure(skeleton, expected):
        return ""
    kind = type(value).__name__ if isinstance(skeleton, Leaf) else describe(skeleton)
    return f"the output is {kind}; the reference returns {describe(expected)}"


def describe(skeleton: Any) -> str:
    """Describes a nested value for a message: `tuple of 2`, `dict of 1`, `one value`."""
    if isinstance(skeleton, Leaf):
        return "one value"
    return f"{type(skeleton).__name__} of {len(skeleton)}"


def _take(value: Any, leaves: list[Any]) -> Any:
    if isinstance(value, dict):
        return {key: _take(value[key], leaves) for key in sorted(value, key=str)}
    if isinstance(value, tuple) and type(value) is not tuple:  # named tuples, including torch's
        return tuple(_take(item, leaves) for item in value)
    if type(value) in (list, tuple):
        return type(value)(_take(item, leaves) for item in value)
    leaves.append(value)
    return LEAF


def _put(skeleton: Any, supply: Iterator[Any]) -> Any:
    if isinstance(skeleton, Leaf):
        return next(supply)
    if isinstance(skeleton, dict):
        return {key: _put(item, supply) for key, item in skeleton.items()}
    # A list, because a generator would turn StopIteration into RuntimeError.
    return type(skeleton)([_put(item, supply) for item in skeleton])
