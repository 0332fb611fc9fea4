"""Texts on launches and counters."""

from __future__ import annotations

from inlinebench.report.launches import described
from inlinebench.results.launches import Counters, Launched
from inlinebench.results.result import KernelShare

COPY = KernelShare("Memcpy", "copy", 1.0, 1.0)
PLAIN = KernelShare("rows", "own", 1.0, 1.0, 1, Launched(1, 32, 16, 0))


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert described(COPY, None) == ""
    assert described(KernelShare("rows", "own", 1.0, 1.0, 1, None, Counters(1.0)), None) == ""
    assert described(PLAIN, None) == "1 x 32 threads, 16 registers"


def test_counters_without_a_launch_are_told() -> None:
    counters = Counters(1.0, dram_share=0.9, l2_share=0.4, tensor_share=0.0)
    assert described(KernelShare("rows", "own", 1.0, 1.0, 3, None, counters), None) == (
        "3 launches; DRAM 90%, L2 40%, tensor cores 0%")
