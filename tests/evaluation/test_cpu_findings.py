from __future__ import annotations

import torch

from inlinebench.evaluation.failures import verdict_of
from inlinebench.records.result import Verdict

CLAIM = "RuntimeError: inlinebench: unsupported: CUDA graphs"


def test_unsupported_code_is_skipped_on_the_cpu() -> None:
    assert verdict_of(CLAIM, Verdict.CRASHED, torch.device("cpu")) is Verdict.SKIPPED
    assert verdict_of("RuntimeError: other", Verdict.CRASHED, torch.device("cpu")) is Verdict.CRASHED


def test_a_solution_cannot_get_itself_skipped_on_a_gpu() -> None:
    assert verdict_of(CLAIM, Verdict.CRASHED, torch.device("cuda", 0)) is Verdict.CRASHED
