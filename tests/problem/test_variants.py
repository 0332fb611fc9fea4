from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from inlinebench.problem.variants import CHANGING, Variant, apply_variant, blur, is_continuous

changing = pytest.mark.parametrize("variant", CHANGING, ids=lambda variant: variant.name.lower())


def changed(variant: Variant, tensor: Tensor, seed: int = 0) -> Tensor:
    return apply_variant(variant, tensor.clone(), torch.Generator().manual_seed(seed))


@given(st.sampled_from(CHANGING), st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 8))
def test_variants_keep_zeros_and_create_none(variant: Variant, seed: int, rows: int, columns: int) -> None:
    tensor = torch.randn(rows, columns).tril()
    assert torch.equal(changed(variant, tensor, seed) == 0, tensor == 0)


@given(st.sampled_from(CHANGING), st.integers(0, 2**32), st.integers(2, 9), st.booleans())
def test_symmetric_matrices_stay_symmetric(variant: Variant, seed: int, size: int, batched: bool) -> None:
    half = torch.randn(*([3] if batched else []), size, size)
    tensor = half + half.transpose(-1, -2)
    result = changed(variant, tensor, seed)
    assert torch.equal(result, result.transpose(-1, -2))


@given(st.sampled_from(CHANGING), st.integers(0, 2**32))
def test_mantissas_do_not_change(variant: Variant, seed: int) -> None:
    tensor = torch.randn(100)
    before, after = torch.frexp(tensor).mantissa, torch.frexp(changed(variant, tensor, seed)).mantissa
    assert torch.equal(before.abs(), after.abs())


@changing
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_every_variant_changes_values_and_keeps_shape_dtype_and_strides(variant: Variant, dtype: torch.dtype) -> None:
    tensor = torch.rand(16, 5).to(dtype).t()
    result = changed(variant, tensor)
    assert not torch.equal(result, tensor)
    assert (result.shape, result.dtype, result.stride()) == (tensor.shape, dtype, tensor.stride())


def test_signs_are_mixed_and_depend_on_the_seed() -> None:
    tensor = torch.rand(1000) + 1
    one, other = changed(Variant.SIGNS, tensor, 1), changed(Variant.SIGNS, tensor, 2)
    assert 300 < int((one < 0).sum()) < 700
    assert not torch.equal(one, other)


@given(st.integers(0, 2**32), st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
def test_a_few_values_become_4_to_16_times_as_large_as_the_largest(seed: int, dtype: torch.dtype) -> None:
    tensor = torch.randn(100, 200, generator=torch.Generator().manual_seed(seed)).to(dtype)
    result = changed(Variant.LARGE, tensor, seed)
    top, new = tensor.abs().max(), result[result != tensor].abs()
    assert 1 <= new.numel() <= 5
    assert bool((new >= 4 * top).all()) and bool((new <= 16 * top).all())


@given(st.integers(0, 2**32), st.floats(0.2, 0.5))
def test_one_value_of_each_sign_becomes_large(seed: int, zeros: float) -> None:
    tensor = torch.randn(10_000, generator=torch.Generator().manual_seed(seed))
    tensor[: int(zeros * tensor.numel())] = 0
    result = changed(Variant.ONE_LARGE, tensor, seed)
    new = result[result != tensor]
    assert sorted(new.sign().tolist()) == [-1, 1]
    assert bool(new.abs().exp().isinf().all())
    assert bool((new.abs() >= 4 * tensor.abs().max()).all())


@given(st.integers(0, 2**32), st.sampled_from(["rand", "randn"]))
def test_all_values_have_one_sign_that_most_did_not_have(seed: int, draw: str) -> None:
    tensor: Tensor = getattr(torch, draw)(50, generator=torch.Generator().manual_seed(seed))
    assert bool((changed(Variant.ONE_SIGN, tensor, seed) <= 0).all())
    assert bool((changed(Variant.ONE_SIGN, -tensor.abs(), seed) >= 0).all())


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(16, 40))
def test_random_signs_leave_some_rows_and_columns_with_one_sign(seed: int, rows: int, columns: int) -> None:
    tensor = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    result = changed(Variant.SIGNS, tensor, seed)
    for dimension in (0, 1):
        uniform = (result > 0).all(dimension) | (result < 0).all(dimension)
        assert int(uniform.sum()) >= 1
    assert bool((result.sign() != result.sign().flatten()[0]).any())
    assert torch.equal(result.abs(), tensor.abs())


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 40))
def test_scaled_down_inputs_have_some_much_smaller_rows_and_columns(seed: int, rows: int, columns: int) -> None:
    tensor = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    small = changed(Variant.SCALED_DOWN, tensor, seed).abs() < tensor.abs() / 128
    assert bool(small.all(0).any()) and bool(small.all(1).any())


def test_one_value_becomes_large_where_all_have_the_same_sign() -> None:
    tensor = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    assert int((changed(Variant.ONE_LARGE, tensor) != tensor).sum()) == 1


def test_the_plain_variant_changes_nothing() -> None:
    tensor = torch.randn(10)
    assert torch.equal(changed(Variant.PLAIN, tensor), tensor)


CONTINUOUS = {
    "uniform": lambda: torch.rand(100),
    "normal": lambda: torch.randn(8, 16),
    "half": lambda: torch.randn(1000).half(),
    "sparse": lambda: torch.randn(100, 100).tril(),
    "large": lambda: torch.rand(300, 300),
    "scaled": lambda: torch.randn(100) * 1e6,
    "one_row_rises": lambda: torch.stack([torch.rand(64).sort().values, torch.rand(64)]),
}
LEFT_ALONE = {
    "integers": lambda: torch.arange(100),
    "bools": lambda: torch.rand(100) > 0.5,
    "constants": lambda: torch.full((100,), 0.3),
    "mask": lambda: torch.rand(100).round(),
    "additive_mask": lambda: torch.full((32, 32), float("-inf")).triu(1),
    "one_hot": lambda: torch.nn.functional.one_hot(torch.arange(50) % 10).float(),
    "labels": lambda: torch.randint(0, 1000, (100,)).float(),
    "plus_or_minus_one": lambda: torch.randint(0, 2, (100,)).float() * 2 - 1,
    "probabilities": lambda: torch.randn(8, 100).softmax(-1),
    "probabilities_by_column": lambda: torch.randn(100, 8).softmax(0),
    "sorted": lambda: torch.rand(256).sort().values,
    "sorted_rows": lambda: torch.rand(8, 64).sort(-1, descending=True).values,
    "eight_bits": lambda: torch.randn(100).to(torch.float8_e4m3fn),
    "few_elements": lambda: torch.rand(5),
    "one_value": lambda: torch.rand(()),
    "empty": lambda: torch.rand(0, 5),
    "not_finite": lambda: torch.cat([torch.rand(100), torch.tensor([float("nan")])]),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_values_take_variants(name: str) -> None:
    assert is_continuous(CONTINUOUS[name]())


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_values_that_are_not_a_continuous_quantity_take_no_variants(name: str) -> None:
    assert not is_continuous(LEFT_ALONE[name]())


def test_negative_values_that_add_up_to_one_are_not_probabilities() -> None:
    tensor = torch.randn(8, 100).double()
    assert is_continuous(tensor - tensor.mean(-1, keepdim=True) + 0.01)


@given(st.integers(0, 2**32), st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]))
def test_blurred_values_are_slightly_smaller_and_depend_on_the_seed(seed: int, dtype: torch.dtype) -> None:
    tensor = torch.randn(64, 5).tril().to(dtype)
    blurred = blur(tensor.clone(), torch.Generator().manual_seed(seed))
    assert torch.equal(blurred == 0, tensor == 0) and torch.equal(blurred.sign(), tensor.sign())
    assert bool((blurred.abs() <= tensor.abs()).all()) and bool((blurred.abs() >= 0.98 * tensor.abs()).all())
    assert not torch.equal(blurred, blur(tensor.clone(), torch.Generator().manual_seed(seed + 1)))


def test_a_symmetric_matrix_stays_symmetric_when_blurred() -> None:
    half = torch.randn(9, 9)
    blurred = blur(half + half.t(), torch.Generator().manual_seed(1))
    assert torch.equal(blurred, blurred.t())


def test_sympy_is_not_imported() -> None:
    """It takes up to a second, which each judge would pay. Several functions of torch import it when they are called.
    """
    code = ("import sys, torch; from inlinebench.problem.variants import CHANGING, apply_variant; "
            "[apply_variant(each, torch.randn(9, 9), torch.Generator()) for each in CHANGING]; "
            "sys.exit('sympy' in sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)
