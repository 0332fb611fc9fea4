"""What an answer means that says that something failed in the candidate."""

from __future__ import annotations

from typing import Any

import torch

from inlinebench.evaluation.attempt import Failed
from inlinebench.records.result import Verdict

LONGEST_MESSAGE = 4000

FAILURES = {
    "import": Verdict.INVALID,
    "not_linked": Verdict.BUILD_FAILED,
    "signature": Verdict.INVALID,
    "constructor": Verdict.CRASHED,
    "exception": Verdict.CRASHED,
    "out_of_memory": Verdict.OUT_OF_MEMORY,
}


CPU_FINDINGS = {
    "inlinebench: barrier divergence": Verdict.WRONG,
    "inlinebench: invalid warp mask": Verdict.WRONG,
    "inlinebench: too much static shared memory": Verdict.BUILD_FAILED,
    "inlinebench: unsupported": Verdict.SKIPPED,
}
"""What the library that runs kernels on the CPU says when it stops one. A solution could say so as well, and would
fail or be skipped for it."""


def raise_failure(answer: dict[str, Any], device: torch.device) -> None:
    if answer["op"] == "failed":
        message = str(answer.get("message"))[:LONGEST_MESSAGE] or "the solution raised an exception"
        otherwise = FAILURES.get(str(answer.get("kind")), Verdict.CRASHED)
        raise Failed(verdict_of(message, otherwise, device), message)
    if answer["op"] == "mismatch":
        raise Failed(Verdict.WRONG, str(answer.get("message"))[:LONGEST_MESSAGE] or "the output has another form")


def verdict_of(message: str, otherwise: Verdict, device: torch.device) -> Verdict:
    """The verdict of what the library that runs kernels on the CPU found, if that is what a message is about.

    On a GPU there is no such library: a solution that claims to be unsupported there must not be skipped for it.
    """
    if device.type != "cpu":
        return otherwise
    return next((verdict for sign, verdict in CPU_FINDINGS.items() if sign in message), otherwise)
