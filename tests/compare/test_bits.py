from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compare.bits import same_bits

ELEMENTS = {torch.float32: 61, torch.bfloat16: 64, torch.float64: 8, torch.uint8: 3, torch.complex64: 5}


@given(st.sampled_from(list(ELEMENTS)), st.integers(0, 1023), st.integers(1, 255), st.integers(0, 9))
def test_every_change_of_a_byte_is_found(dtype: torch.dtype, place: int, change: int, offset: int) -> None:
    size = ELEMENTS[dtype] * dtype.itemsize
    memory = torch.randint(0, 256, (size + offset * dtype.itemsize,), dtype=torch.uint8)
    one, other = memory.view(dtype)[offset:], memory.clone().view(dtype)[offset:]
    assert same_bits(one, other) and same_bits(one, other.clone())
    other.view(torch.uint8)[place % size] ^= change
    assert not same_bits(one, other) and not same_bits(other, one.clone())


def test_nan_equals_itself_and_zeros_differ_by_their_sign() -> None:
    nan = torch.full((4,), float("nan"))
    assert same_bits(nan, nan.clone())
    assert not same_bits(torch.zeros(4), -torch.zeros(4))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3)])
def test_tensors_of_any_shape_are_compared(shape: tuple[int, ...]) -> None:
    assert same_bits(torch.ones(shape), torch.ones(shape))


def test_dense_tensors_are_compared_in_memory_order() -> None:
    values = torch.arange(6.0).view(2, 3)
    assert same_bits(values.t(), values.clone().t())
