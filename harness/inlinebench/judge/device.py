"""Selects the device of a judge, and describes it and its software for results."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from inlinebench.records.options.kinds import DEVICE
from inlinebench.records.result import Environment
from inlinebench.version import __version__

DRIVER_VERSION = Path("/sys/module/nvidia/version")
"""The driver's version. Reading this file takes no time, while nvidia-smi takes a fifth of a second."""


class UnusableDevice(Exception):
    """The requested device cannot be used. The message says what to do."""


def resolve(wanted: str) -> torch.device:
    """Returns the device for `auto`, `cpu`, `cuda` or `cuda:N`. Raises UnusableDevice if there is none."""
    if wanted == "cpu":
        return torch.device("cpu")
    if not re.fullmatch(DEVICE, wanted):
        raise UnusableDevice(f"--device {wanted} is not a device; use auto, cuda, cuda:N or cpu")
    if not torch.cuda.is_available():
        if wanted == "auto":
            return torch.device("cpu")
        raise UnusableDevice(_why_no_cuda())
    index = int(wanted.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise UnusableDevice(f"--device {wanted}: there are {count} CUDA devices, numbered from 0")
    return torch.device("cuda", index)


def environment(device: torch.device, tf32: bool) -> Environment:
    """Returns the hardware and software that results on this device are recorded with."""
    common = Environment(torch=str(torch.__version__), harness=__version__, tf32=tf32)
    if device.type == "cpu":
        return replace(common, cpu=f"{_processor()}, {os.cpu_count()} cores")
    return replace(common, gpu=torch.cuda.get_device_name(device), driver=_driver(), cuda=torch.version.cuda)


def architectures(device: torch.device) -> tuple[str, ...]:
    """Returns the compute capabilities to build for, as nvcc writes them (`90`). Empty on the CPU."""
    if device.type == "cpu":
        return ()
    major, minor = torch.cuda.get_device_capability(device)
    return (f"{major}{minor}",)


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return (f"no CUDA device: this PyTorch ({torch.__version__}) is built without CUDA; install a CUDA build of "
                "torch on a machine with an NVIDIA GPU")
    return ("no CUDA device: PyTorch finds none; check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES "
            "doesn't hide it")


def _driver() -> str | None:
    with suppress(OSError):
        return DRIVER_VERSION.read_text(encoding="ascii").strip()
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.split("\n")[0].strip() or None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
