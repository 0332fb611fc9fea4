"""Describes how accurate a solution is compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.results.result import Accuracy, Errors

ALIKE = 1.5
"""Two relative errors within this factor of each other count as equal."""


def beside_reference(found: Accuracy) -> str:
    """Returns how accurate the solution is beside PyTorch, such as "8 times less accurate than PyTorch"."""
    solution, reference = found.solution.rel_l2, found.reference.rel_l2
    if solution <= ALIKE * reference and reference <= ALIKE * solution:
        return "as accurate as PyTorch"
    if reference == 0:
        return "less accurate than PyTorch, which is exact here"
    if solution == 0:
        return "exact, and PyTorch is not"
    more, factor = solution < reference, max(solution / reference, reference / solution)
    return f"{factor:.2g} times {'more' if more else 'less'} accurate than PyTorch"


def in_sigmas(errors: Errors) -> str:
    """Returns the median, the 99.9 % quantile and the largest error in units of sigma."""
    return f"{errors.median:.2g} / {errors.high:.2g} / {errors.worst:.2g}"


def ulp_shares(found: Sequence[Errors]) -> list[tuple[str, ...]]:
    """Returns a row for each bin that is not empty: its range in ULPs, and the share of each argument's elements."""
    longest = max((len(errors.ulps) for errors in found), default=0)
    rows = []
    for at in range(longest):
        counts = [errors.ulps[at] if at < len(errors.ulps) else 0 for errors in found]
        if any(counts):
            shares = (f"{count / sum(errors.ulps):.3%}" if sum(errors.ulps) else "0%"
                      for count, errors in zip(counts, found, strict=True))
            rows.append((_range(at, longest - 1), *shares))
    return rows


def _range(at: int, last: int) -> str:
    low, high = (f"{2.0 ** (at - 2):g}" if at else "0"), f"{2.0 ** (at - 1):g}"
    return f"{low} or more" if at == last else f"{low} to {high}"
