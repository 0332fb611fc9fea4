from __future__ import annotations

import pytest

from harness.judge.scrutiny import is_fig_leaf

REFERENCE = {"gemm": 2.68, "scale": 0.02, "normalise": 0.02}


@pytest.mark.parametrize(("library", "leaf"), [
    ({"gemm": 2.68, "scale": 0.02, "normalise": 0.02}, True),   # all of the reference, and something useless beside it
    ({"gemm": 2.68}, False),                                    # its own kernels replace what else there was
    ({"gemm": 2.68, "scale": 0.02}, True),                      # they replace 0.7 %
    ({"another gemm": 2.5}, False),                             # the library, but not the reference's way of calling it
    ({}, False),
])
def test_own_kernels_without_a_time_of_their_own_must_replace_something(library: dict[str, float], leaf: bool) -> None:
    assert is_fig_leaf(library, REFERENCE) is leaf
