"""Arithmetic that specialists accept passes, and arithmetic that cheats fails. `benchmarks/numerics.py` measures it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.problem.variants import Variant

from .judging import PAIRS, Pair

FILES = sorted(PAIRS.glob("*.py"))
QUICK = {"softmax", "layer_norm", "gemm_float32", "gemm_bf16", "topk_bf16", "argmax_of_product", "gelu", "cumsum",
         "fake_quantization", "batch_norm_running", "kl_div", "max_of_rows", "moe_router", "relu_sparse"}
"""The files that are tested in every run; the others are slow."""
MARKED = [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in FILES]
CPU = torch.device("cpu")


def check(pair: Pair, variants: tuple[Variant, ...], seed: int) -> None:
    for variant in variants:
        for found in pair.call(variant, seed):
            assert not (found.honest and found.failure), f"{found.name}, {variant}: {found.failure}"
            hidden = pair.few or pair.revealed_by.get(found.name, variant) is not variant
            assert found.honest or found.failure or hidden, f"{found.name}, {variant}: passed"


@pytest.mark.parametrize("path", MARKED)
def test_honest_arithmetic_passes_and_cheats_fail(path: Path) -> None:
    with Pair(path, "small", CPU) as pair:
        assert any(pair.implementations.values()) and not all(pair.implementations.values())
        check(pair, (Variant.PLAIN, *sorted(set(pair.revealed_by.values()))), 0)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_honest_arithmetic_passes_on_changed_inputs(path: Path) -> None:
    with Pair(path, "small", CPU) as pair:
        for variant in pair.variants[1:]:
            for found in pair.call(variant, 1, lambda name: pair.implementations[name]):
                assert not found.failure, f"{found.name}, {variant}: {found.failure}"
