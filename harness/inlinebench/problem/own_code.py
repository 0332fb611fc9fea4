"""Reports when a step of a problem's own code begins and ends, so that the parent process can limit its time. On the
CPU, "cuda" means the CPU in these steps, as in solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch

from inlinebench.cuda_on_cpu.python_side import cuda_is_cpu
from inlinebench.process.steps import Step

LOADING = "loading the file"
CONSTRUCTOR = "the constructor Model(...)"
FORWARD = "the reference's forward"

_report: Callable[[Step], None] | None = None
_device = torch.device("cpu")


def report_steps(report: Callable[[Step], None], device: torch.device) -> None:
    """Sets who receives the steps of this process, and the device that problems run on. Without it nobody does."""
    global _report, _device
    _report, _device = report, device


@contextmanager
def step(name: str) -> Iterator[None]:
    """Runs a step of the problem's own code. Work that it queues on the GPU is part of it. Steps do not nest."""
    if _report is None:
        yield
        return
    _report(Step(name))
    try:
        with cuda_is_cpu() if _device.type == "cpu" else nullcontext():
            yield
        if _device.type == "cuda":
            torch.cuda.synchronize(_device)
    finally:
        _report(Step(""))
