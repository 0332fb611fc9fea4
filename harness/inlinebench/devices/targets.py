"""Chooses what to build for."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.compile.target import Target
from inlinebench.devices.cpu.target import CpuTarget
from inlinebench.devices.gpu.target import GpuTarget


def target_for(architectures: Sequence[str]) -> Target:
    """Returns the target for GPUs of these compute capabilities, as nvcc names them, or for the CPU if there are none.
    """
    return GpuTarget(architectures) if architectures else CpuTarget()
