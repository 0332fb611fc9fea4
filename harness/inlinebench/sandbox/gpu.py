"""The GPU under test, as a candidate sees it: the only one of the machine.

The device files of the others stay accessible. NVML did not start when they were closed, but it did not start in
candidates at all then, for another reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
"""NVIDIA's driver has a folder for each GPU of the machine here."""
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Gpu:
    """The GPU that a candidate may use."""

    device: str
    """PyTorch's name of it in the candidate's process."""
    visible: str | None = None
    """The value of CUDA_VISIBLE_DEVICES there. None: as in this process."""


def only(device: str, uuid: str, driver: Path = DRIVER) -> Gpu:
    """Returns the GPU with a UUID, whose prefix `GPU-` is optional.

    `device` is PyTorch's name of it in this process, and stays it if there is no other GPU. A part of a GPU (MIG), and
    GPUs that the driver does not list in /proc, are not told apart.
    """
    name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    listed = [path.read_text(encoding="utf-8", errors="replace") for path in driver.glob("*/information")]
    found = [uuid for text in listed for uuid in _UUID.findall(text)]
    return Gpu("cuda:0", name) if name in found and len(found) > 1 else Gpu(device)
