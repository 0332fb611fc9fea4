"""Distances in ULP, by laws that hold for each dtype."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compare.bits import same_bits
from inlinebench.compare.ulps import INTEGERS, differing, ulps_between

FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn)
INTEGER_TYPES = (torch.bool, torch.uint8, torch.int32, torch.int64)


@st.composite
def pairs(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = FLOATS) -> tuple[torch.Tensor, torch.Tensor]:
    """Two numbers of any bits, with the same dtype (1-d, one element)."""
    dtype = draw(st.sampled_from(dtypes))
    integer = INTEGERS[dtype.itemsize]
    limits = torch.iinfo(integer)
    bits = st.integers(limits.min, limits.max)
    one = draw(bits)
    other = draw(bits | st.sampled_from([one, max(limits.min, one - 1), min(limits.max, one + 1)]))
    return tuple(torch.tensor([each], dtype=integer).view(dtype) for each in (one, other))  # type: ignore[return-value]


@given(pairs())
def test_the_distance_is_symmetric(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert ulps_between(*pair) == ulps_between(*pair[::-1])


@given(pairs())
def test_bits_differ_exactly_where_words_do(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert bool(differing(*pair)) is not same_bits(*pair)


@given(pairs())
def test_the_distance_is_zero_exactly_for_equal_numbers(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    one, other = (tensor.double() for tensor in pair)
    distance = ulps_between(*pair)
    if bool(one.isfinite() & other.isfinite()):
        assert (distance == 0) is bool(one == other)
    else:
        assert distance == math.inf


@given(pairs())
def test_numbers_with_equal_signs_are_as_far_apart_as_their_bits(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    one, other = (int(tensor.view(INTEGERS[tensor.element_size()])) for tensor in pair)
    distance = ulps_between(*pair)
    if (one < 0) == (other < 0) and distance != math.inf:
        assert distance == float(abs(one - other))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [1.0, 2.0, 1.5, -1.0, 0.0625])
def test_neighbours_are_one_apart_across_binades_too(dtype: torch.dtype, value: float) -> None:
    number = torch.tensor([value], dtype=dtype)
    integer = INTEGERS[dtype.itemsize]
    for step in (-1, 1):
        assert ulps_between(number, (number.view(integer) + step).view(dtype)) == 1


def test_the_distance_passes_through_zero() -> None:
    smallest = torch.tensor([1], dtype=torch.int32).view(torch.float32)
    assert ulps_between(smallest, -smallest) == 2
    assert ulps_between(torch.tensor([0.0]), torch.tensor([-0.0])) == 0
    assert bool(differing(torch.tensor([0.0]), torch.tensor([-0.0])))


def test_one_ulp_of_a_large_float64_is_seen() -> None:
    one = torch.tensor([1e300], dtype=torch.float64)
    assert ulps_between(one, torch.nextafter(one, one * 2)) == 1


def test_the_largest_distance_counts_and_no_elements_have_none() -> None:
    one = torch.ones(3)
    assert ulps_between(one, one + torch.tensor([0.0, 2.0**-22, 2.0**-23])) == 2
    assert ulps_between(one[:0], one[:0]) == 0


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGER_TYPES, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)], ids=str)
def test_differing_keeps_the_shape_of_every_dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    one = torch.zeros(shape).to(dtype)
    other = one.clone()
    assert not differing(one, other).any() and differing(one, other).shape == shape
    if one.numel():
        other.view(-1)[-1] = 1
        assert differing(one, other).sum() == 1 and bool(differing(one, other).view(-1)[-1])


def test_strides_do_not_matter() -> None:
    one = torch.arange(6.0).view(2, 3)
    assert not differing(one, one.T.contiguous().T).any()
