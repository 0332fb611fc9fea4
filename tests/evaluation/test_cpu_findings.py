from __future__ import annotations

import pytest
import torch

from inlinebench.evaluation.failures import CPU_FINDINGS, FAILURES, verdict_of
from inlinebench.results.result import Verdict

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
CLAIM = "RuntimeError: inlinebench: unsupported on the CPU (run with a CUDA device): CUDA graphs"


@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_solution_cannot_get_itself_skipped_by_a_message(device: torch.device) -> None:
    assert verdict_of(CLAIM, Verdict.CRASHED, device) is Verdict.CRASHED


def test_a_finding_of_the_cpu_runtime_counts_on_the_cpu() -> None:
    finding = "inlinebench: barrier divergence in kernel k"
    assert verdict_of(finding, Verdict.CRASHED, CPU) is Verdict.WRONG
    assert verdict_of(finding, Verdict.CRASHED, GPU) is Verdict.CRASHED


def test_every_verdict_of_a_message_is_a_failure() -> None:
    fine = {Verdict.PASSED, Verdict.SKIPPED}
    assert not fine & {*CPU_FINDINGS.values(), *FAILURES.values()}
