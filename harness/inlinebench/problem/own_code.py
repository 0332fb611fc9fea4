"""Reports when a step of a problem's own code begins and ends, so that the parent process can limit its time.

On the CPU, "cuda" means the CPU in these steps, as in solutions. `TorchSettings` restores what a problem has set in
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from inlinebench.devices.cpu.emulation import cuda_is_cpu
from inlinebench.devices.registry import of
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
        with cuda_is_cpu() if of(_device).kind.emulates_cuda else nullcontext():
            yield
        of(_device).synchronize()
    finally:
        _report(Step(""))


class TorchSettings:
    """PyTorch's settings for the whole process, which a problem's code may change, as they are now."""

    def __init__(self) -> None:
        self._values = list(map(_value_of, _SETTINGS))

    def restore(self) -> None:
        """Sets those back that have changed."""
        for value, setting in zip(self._values, _SETTINGS, strict=True):
            if value is not _UNKNOWN and _value_of(setting) != value:
                setting[1](value)


Setting = tuple[Callable[[], Any], Callable[[Any], object]]
"""The functions that return a setting and change it."""
_UNKNOWN = object()


def _value_of(setting: Setting) -> Any:
    try:
        return setting[0]()
    except RuntimeError:  # flags of TF32 cannot be read after both of PyTorch's interfaces for them have been used
        return _UNKNOWN


def _flag(owner: Any, name: str) -> Setting:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


_NO_DEFAULT = torch.get_default_device()
"""The device of new tensors unless a default is set, which costs time in each call of PyTorch."""
_SETTINGS: tuple[Setting, ...] = (
    (torch.get_default_device, lambda device: torch.set_default_device(None if device == _NO_DEFAULT else device)),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    _flag(torch.backends.cuda.matmul, "allow_tf32"), _flag(torch.backends.cudnn, "allow_tf32"),
    _flag(torch.backends.cudnn, "benchmark"), _flag(torch.backends.cudnn, "deterministic"),
    _flag(torch.backends.cudnn, "enabled"),
    _flag(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
    _flag(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
)
