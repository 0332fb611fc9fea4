"""Decides when the calls of a candidate are made, on which inputs, and when they end."""

from __future__ import annotations

import os
import time

from inlinebench.devices.cuda.state import GpuWatch
from inlinebench.evaluation.attempt import Tools
from inlinebench.evaluation.calls import Calls
from inlinebench.evaluation.draws import Draws
from inlinebench.evaluation.timings import Timings
from inlinebench.timing.stopping import Sampling
from inlinebench.wire.processes import descendants


def sample(calls: Calls, draws: Draws, timings: Timings, tools: Tools, sampling: Sampling) -> None:
    """Makes warm-up calls, then counted ones until a criterion is met and no kind of inputs lacks times. Raises Failed.
    """
    warmup = tools.settings.warmup
    for number in range(1, warmup + 1):
        tools.progress(f"warm-up call {number}")
        calls.make(number, counted=False)
    begin, counted, stop = time.monotonic(), 0, None
    while stop is None:
        counted += 1
        tools.progress(f"call {counted}")
        calls.make(warmup + counted, counted=True)
        stop = sampling.stop(counted, time.monotonic() - begin, timings.ratios, timings.margin)
    timings.stopped_by = stop
    for variant in timings.missing(draws.variants):
        counted += 1
        tools.progress(f"call {counted} ({variant})")
        calls.make(warmup + counted, counted=True, variant=variant)
    if isinstance(tools.watch, GpuWatch):
        timings.other_processes = tools.watch.other_processes(descendants(os.getpid(), unreaped=True))
