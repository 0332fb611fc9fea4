from __future__ import annotations

import pytest

from inlinebench.report.accuracy import beside_reference, ulp_shares
from inlinebench.results.result import Accuracy, Errors


@pytest.mark.parametrize(("solution", "reference", "words"), [
    (1e-6, 1.2e-6, "as accurate as PyTorch"), (8e-6, 1e-6, "8 times less accurate than PyTorch"),
    (1e-7, 4e-7, "4 times more accurate than PyTorch"), (0.0, 0.0, "as accurate as PyTorch"),
    (1e-7, 0.0, "less accurate than PyTorch, which is exact here"), (0.0, 1e-7, "exact, and PyTorch is not"),
])
def test_the_accuracy_is_described_beside_pytorch(solution: float, reference: float, words: str) -> None:
    found = Accuracy("output", *(Errors(0.0, 0.0, 0.0, rel_l2) for rel_l2 in (solution, reference)))
    assert beside_reference(found) == words


def test_the_histogram_has_shares_of_the_bins_that_are_not_empty() -> None:
    both = (Errors(0, 0, 0, 0, (3, 0, 1, 0)), Errors(0, 0, 0, 0, (2, 0, 0, 2)))
    assert ulp_shares(both) == [
        ("0 to 0.5", "75.000%", "50.000%"), ("1 to 2", "25.000%", "0.000%"), ("2 or more", "0.000%", "50.000%")]
    assert ulp_shares([Errors(0, 0, 0)]) == []
