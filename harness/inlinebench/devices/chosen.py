"""Chooses the devices of a run: one, or one for each judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inlinebench.errors import NoDevice, UsageError
from inlinebench.options import Options
from inlinebench.options.kinds import ALL_DEVICES
from inlinebench.sandbox.gpu import DRIVER

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class JudgeDevice:
    """The device of one judge."""

    gpu: str | None = None
    """The only GPU that the judge sees, as an entry of CUDA_VISIBLE_DEVICES. None leaves that variable unchanged."""
    label: str = ""
    """The name of the device in results. Empty means the judge's own name for it."""


def chosen(options: Options, environment: Mapping[str, str], driver: Path = DRIVER) -> list[JudgeDevice]:
    """Returns the device of each judge.

    With several GPUs each judge sees only its own, so that problems and solutions that use "cuda" use that GPU. Raises
    NoDevice if there is no GPU, and UsageError for a number without a GPU.
    """
    if not options.devices:
        return [JudgeDevice()]
    if set(options.devices) == {"cpu"}:
        return [JudgeDevice() for _ in options.devices]
    visible = _visible(environment, driver)
    if not visible:
        raise NoDevice("--devices: this machine has no NVIDIA GPU; use --devices cpu,cpu for two judges on the CPU")
    if options.devices == (ALL_DEVICES,):
        return [JudgeDevice(gpu, f"cuda:{number}") for number, gpu in enumerate(visible)]
    numbers = [int(name) for name in options.devices]
    if beyond := [number for number in numbers if number >= len(visible)]:
        raise UsageError(f"--devices {beyond[0]}: there are {len(visible)} GPUs, numbered from 0")
    return [JudgeDevice(visible[number], f"cuda:{number}") for number in numbers]


def device_of(options: Options) -> str:
    """Returns the device that each judge is asked for, as `--device` takes it. A judge of several sees one GPU only."""
    return "cpu" if "cpu" in options.devices else options.device


def _visible(environment: Mapping[str, str], driver: Path) -> list[str]:
    if VISIBLE in environment:
        return [name for name in environment[VISIBLE].split(",") if name.strip()]
    return [str(number) for number, _ in enumerate(driver.iterdir())] if driver.is_dir() else []
