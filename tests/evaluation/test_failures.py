"""What happens to a solution's verdict if the judge itself runs out of memory."""

from __future__ import annotations

import pytest
import torch

from inlinebench.evaluation.evaluation import _failure
from inlinebench.records.result import Verdict


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_judge_without_memory_does_not_skip_the_solution(error: type[Exception]) -> None:
    def step() -> None:
        raise error

    failure = _failure(step, None, None, torch.device("cpu"))  # type: ignore[arg-type]
    assert failure is not None and failure.verdict is Verdict.OUT_OF_MEMORY
