from __future__ import annotations

import torch

from inlinebench.evaluation.failures import verdict_of
from inlinebench.records.result import Verdict

CLAIM = "RuntimeError: inlinebench: unsupported: CUDA graphs"


def test_what_cannot_run_on_the_cpu_is_skipped_there() -> None:
    assert verdict_of(CLAIM, Verdict.CRASHED, torch.device("cpu")) is Verdict.SKIPPED
    assert verdict_of("RuntimeError: other", Verdict.CRASHED, torch.device("cpu")) is Verdict.CRASHED


def test_a_solution_cannot_claim_its_way_to_a_skip_on_a_gpu() -> None:
    assert verdict_of(CLAIM, Verdict.CRASHED, torch.device("cuda", 0)) is Verdict.CRASHED
