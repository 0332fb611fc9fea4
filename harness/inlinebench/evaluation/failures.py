"""The exception for a solution that does not pass, and the verdicts for failures that a candidate reports."""

from __future__ import annotations

from typing import Any

import torch

from inlinebench.devices.registry import of
from inlinebench.results.result import Mismatch, Verdict

LONGEST_MESSAGE = 4000
"""Characters of a candidate's message that are kept."""

FAILURES = {
    "import": Verdict.INVALID,
    "not_linked": Verdict.BUILD_FAILED,
    "signature": Verdict.INVALID,
    "constructor": Verdict.CRASHED,
    "exception": Verdict.CRASHED,
    "out_of_memory": Verdict.OUT_OF_MEMORY,
}
"""The verdict for each kind of failure that a candidate reports."""

CPU_FINDINGS = {
    "inlinebench: barrier divergence": Verdict.WRONG,
    "inlinebench: invalid warp mask": Verdict.WRONG,
    "inlinebench: data race": Verdict.WRONG,
    "inlinebench: too much static shared memory": Verdict.BUILD_FAILED,
}
"""The verdict for each message of the CPU runtime when it stops a kernel. A solution can print or raise such a message
itself, so none of the verdicts may be better than a failure."""

UNINITIALISED = "uninitialised read of "
"""How the CPU runtime's note on a read of what nothing wrote begins. The reason for a call that differs repeats it."""


class Failed(Exception):
    """The solution did not pass.

    Args:
        verdict: the verdict for the result.
        reason: the reason, as the result shows it.
        mismatch: where and how values differ, if wrong values are the reason.
    """

    def __init__(self, verdict: Verdict, reason: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.mismatch = verdict, reason, mismatch


def raise_failure(reply: dict[str, Any], device: torch.device) -> None:
    """Raises Failed if a reply reports a failure."""
    if reply["op"] == "failed":
        message = str(reply.get("message"))[:LONGEST_MESSAGE] or "the solution raised an exception"
        otherwise = FAILURES.get(str(reply.get("kind")), Verdict.CRASHED)
        raise Failed(verdict_of(message, otherwise, device), message)
    if reply["op"] == "mismatch":
        message = str(reply.get("message"))[:LONGEST_MESSAGE]
        raise Failed(Verdict.WRONG, message or "the output has a different structure from the reference's")


def verdict_of(message: str, otherwise: Verdict, device: torch.device) -> Verdict:
    """Returns the verdict for a message of the runtime that emulates CUDA, and `otherwise` for any other message, or if
    the device needs no emulation."""
    if not of(device).kind.emulates_cuda:
        return otherwise
    return next((verdict for sign, verdict in CPU_FINDINGS.items() if sign in message), otherwise)
