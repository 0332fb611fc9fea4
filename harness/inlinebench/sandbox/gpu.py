"""The GPU under test, as a candidate sees it: the only one of the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
"""NVIDIA's driver has a folder for each GPU of the machine here."""
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Gpu:
    """The GPU that a candidate may use."""

    device: str
    """PyTorch's name of it in the candidate's process."""
    visible: str | None = None
    """The value of CUDA_VISIBLE_DEVICES there. None: as in this process."""
    closed: tuple[str, ...] = ()
    """The device files of the machine's other GPUs, which the candidate cannot open."""


def only(device: str, uuid: str, driver: Path = DRIVER) -> Gpu:
    """Returns the GPU with a UUID, whose prefix `GPU-` is optional.

    `device` is PyTorch's name of it in this process, and stays it if there is no other GPU. A part of a GPU (MIG), and
    GPUs that the driver does not list in /proc, are not told apart.
    """
    name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    listed = [path.read_text(encoding="utf-8", errors="replace") for path in driver.glob("*/information")]
    others = [text for text in listed if name not in _UUID.findall(text)]
    if not others or len(others) == len(listed):
        return Gpu(device)
    closed = tuple(f"/dev/nvidia{minor}" for text in others for minor in _MINOR.findall(text))
    return Gpu("cuda:0", name, closed)
