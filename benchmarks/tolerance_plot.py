"""Draws docs/tolerance.png: the errors of a product in float32 and in TF32, and what `allclose` and the rule allow.

    python benchmarks/tolerance_plot.py docs/tolerance.png

Needs matplotlib. The rows of the product differ in size, as those of an output with small and large parts do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.compare.tolerance import FACTOR, by_sensitivity, default_tolerance, perturbation_of  # noqa: E402
from inlinebench.problem.perturbation import Perturbation, Values  # noqa: E402
from tests.numerics.arithmetic import round_to_tf32  # noqa: E402

ROWS, INNER, COLUMNS, RUNS = 48, 512, 48, 64
TOLERANCE = default_tolerance(torch.float32)


def main() -> None:
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

    torch.manual_seed(0)
    x = torch.randn(ROWS, INNER) * torch.logspace(-4, 2, ROWS)[:, None]
    weight = torch.randn(INNER, COLUMNS)
    exact = (x.double() @ weight.double()).flatten()
    size = perturbation_of(torch.float32, TOLERANCE)
    squares = torch.zeros_like(exact)
    for seed in range(RUNS):
        left, right = Perturbation(size, seed).of([Values(x), Values(weight)])
        squares += ((left @ right).flatten() - exact).square()
    limit = by_sensitivity(torch.float32, TOLERANCE, FACTOR * (squares / RUNS).sqrt()).of(exact, slice(None))
    halves = (x[:, ::2] @ weight[::2] + x[:, 1::2] @ weight[1::2]).flatten()
    tf32 = (round_to_tf32(x) @ round_to_tf32(weight)).flatten()

    figure, axes = plt.subplots(figsize=(8.0, 4.6), dpi=110)
    magnitude, order = exact.abs(), exact.abs().argsort()
    axes.loglog(magnitude, limit, "_", ms=6, color="silver", zorder=1, label="limit of the rule, for each element")
    axes.loglog(magnitude, (tf32.double() - exact).abs(), ".", ms=3, color="tab:red", label="TF32: must fail")
    axes.loglog(magnitude, (halves.double() - exact).abs(), ".", ms=3, color="tab:blue", label="float32: must pass")
    axes.loglog(magnitude[order], TOLERANCE * (1 + magnitude[order]), "--", color="tab:green",
                label="allclose(rtol=1e-4, atol=1e-4)")
    axes.set(xlabel="|expected value|", ylabel="error", ylim=(1e-12, 1e1), xlim=(1e-6, None))
    axes.legend(loc="upper left", fontsize=8)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "tolerance.png")


if __name__ == "__main__":
    main()
