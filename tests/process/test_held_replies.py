"""The messages around a held call: it is announced once, before its reply."""

from __future__ import annotations

from typing import Any

import pytest

from inlinebench.process.candidate_process import CandidateCheated, CandidateProcess

HELD, REPLY = {"op": "held", "nonce": "n", "places": []}, {"op": "held call", "nonce": "n"}


def collect(*frames: dict[str, Any], held: bool = True) -> tuple[dict[str, Any], int]:
    """Returns the reply to a request after these frames, and how often a call was released."""
    process, left, released = CandidateProcess.__new__(CandidateProcess), list(frames), list[Any]()
    process._nonce = "n"
    process._receive = lambda: left.pop(0)  # type: ignore[method-assign]
    reply = process.collect(released.append if held else None)
    return reply, len(released)


def test_a_held_call_is_announced_and_answered() -> None:
    assert collect(HELD, REPLY) == (REPLY, 1)
    assert collect(REPLY, held=False) == (REPLY, 0)


@pytest.mark.parametrize("operation", ["failed", "mismatch"])
def test_a_call_may_fail_before_it_is_held(operation: str) -> None:
    assert collect({**REPLY, "op": operation})[1] == 0


@pytest.mark.parametrize(("frames", "reason"), [
    ([REPLY], "before it was held"),
    ([HELD, HELD, REPLY], "answers no request"),
    ([{**HELD, "nonce": "other"}, REPLY], "answers no request"),
    ([HELD, {**REPLY, "nonce": "other"}], "answers no request"),
])
def test_other_orders_are_refused(frames: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(CandidateCheated, match=reason):
        collect(*frames)
