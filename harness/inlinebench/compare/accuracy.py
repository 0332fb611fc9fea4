"""Measures how accurate an output is compared with the reference: in standard deviations of the rule, and in ULPs."""

from __future__ import annotations

import torch

from inlinebench.compare.tolerance import LARGEST, ULPS, Limit
from inlinebench.results.result import MOST_ULPS, Accuracy, Errors


def accuracy(
    what: str, output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor, *, at: torch.Tensor,
    sigma: torch.Tensor,
) -> Accuracy:
    """Returns the errors of some elements of an output, and of the reference's, against the oracle.

    Args:
        what: what the output is, for the record.
        output: the candidate's tensor.
        reference: the reference's tensor.
        oracle: the oracle's tensor.
        at: the flat indices of the elements.
        sigma: the standard deviation of each of them under perturbations, in float64.
    """
    exact = _wide(oracle.reshape(-1)[at])
    info = torch.finfo(reference.dtype)
    unit = Limit(0.0, ulp=info.eps, smallest=info.smallest_normal).of(exact, slice(None))
    solution, own = (_errors(_wide(tensor.reshape(-1)[at]), exact, unit, sigma) for tensor in (output, reference))
    return Accuracy(what, solution, own)


def _errors(values: torch.Tensor, exact: torch.Tensor, unit: torch.Tensor, sigma: torch.Tensor) -> Errors:
    error = (values - exact).abs()
    known = torch.isfinite(error) & torch.isfinite(unit)
    ulps = (error / unit)[known]
    # Bin 0 is for errors below one half, bin n for those from 2**(n - 2) on; the last one has no end.
    bins = torch.frexp(ulps.clamp(min=0.25)).exponent.add(1).clamp(max=MOST_ULPS)
    counts = torch.bincount(bins.long(), minlength=MOST_ULPS + 1).tolist() if ulps.numel() else []
    rel_l2 = _relative_norm(error[known], exact[known])
    used = known & (sigma > 0)
    scaled = (error - ULPS * unit).clamp(min=0)[used] / sigma[used]
    if not scaled.numel():
        return Errors(0.0, 0.0, 0.0, rel_l2, tuple(counts))
    scaled = scaled.clamp(max=LARGEST).sort().values
    median, most = scaled[scaled.numel() // 2], scaled[int(0.999 * (scaled.numel() - 1))]
    return Errors(float(median), float(most), float(scaled[-1]), rel_l2, tuple(counts))


def _relative_norm(error: torch.Tensor, exact: torch.Tensor) -> float:
    """Returns the L2 norm of the error over that of the exact values, whose squares may overflow. 0 if these are 0."""
    largest = exact.abs().amax() if exact.numel() else torch.zeros(())
    if not float(largest):
        return 0.0
    norm = torch.linalg.vector_norm
    return min(float(norm(error / largest) / norm(exact / largest)), LARGEST)


def _wide(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.complex128 if values.is_complex() else torch.float64)
