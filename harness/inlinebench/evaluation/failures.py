"""Why a solution fails: what a reply means that says that something failed in the candidate."""

from __future__ import annotations

from typing import Any

import torch

from inlinebench.records.result import Mismatch, Verdict

LONGEST_MESSAGE = 4000

FAILURES = {
    "import": Verdict.INVALID,
    "not_linked": Verdict.BUILD_FAILED,
    "signature": Verdict.INVALID,
    "constructor": Verdict.CRASHED,
    "exception": Verdict.CRASHED,
    "out_of_memory": Verdict.OUT_OF_MEMORY,
}
"""Verdicts by the kind of failure that a candidate names."""

CPU_FINDINGS = {
    "inlinebench: barrier divergence": Verdict.WRONG,
    "inlinebench: invalid warp mask": Verdict.WRONG,
    "inlinebench: too much static shared memory": Verdict.BUILD_FAILED,
    "inlinebench: unsupported": Verdict.SKIPPED,
}
"""Verdicts by what the CPU runtime says when it stops a kernel. A solution can only make itself fail by saying so."""


class Failed(Exception):
    """The solution did not pass. `mismatch` describes the wrong values, if values are the reason."""

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
        raise Failed(Verdict.WRONG, str(reply.get("message"))[:LONGEST_MESSAGE] or "the output has another form")


def verdict_of(message: str, otherwise: Verdict, device: torch.device) -> Verdict:
    """The verdict of a message from the CPU runtime, `otherwise` for any other message.

    There is no such runtime on a GPU: a solution that claims to be unsupported there must not be skipped for it.
    """
    if device.type != "cpu":
        return otherwise
    return next((verdict for sign, verdict in CPU_FINDINGS.items() if sign in message), otherwise)
