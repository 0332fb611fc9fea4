"""Where the judges of a run work: on one device, or one on each of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inlinebench.records.errors import NoDevice, UsageError
from inlinebench.records.options import ALL_DEVICES, Options

DRIVER = Path("/proc/driver/nvidia/gpus")
"""A folder for each GPU of the machine."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Device:
    """One judge's: the GPU that alone it is to see (an entry of CUDA_VISIBLE_DEVICES; None: as it comes), and the name
    of the device in its results (empty: as the judge calls it)."""

    gpu: str | None = None
    label: str = ""


def devices(options: Options, environment: Mapping[str, str], driver: Path = DRIVER) -> list[Device]:
    """A place for each judge.

    A judge with a GPU of its own sees no other, so that what a problem or a solution puts on "cuda" lies there. Raises
    NoDevice where there is no GPU, and UsageError for a number that no GPU has.
    """
    if not options.devices:
        return [Device()]
    if set(options.devices) == {"cpu"}:
        return [Device() for _ in options.devices]
    visible = _visible(environment, driver)
    if not visible:
        raise NoDevice("--devices: there is no NVIDIA GPU here; --devices cpu,cpu has two judges on the CPU")
    if options.devices == (ALL_DEVICES,):
        return [Device(gpu, f"cuda:{number}") for number, gpu in enumerate(visible)]
    numbers = [int(name) for name in options.devices]
    if beyond := [number for number in numbers if number >= len(visible)]:
        raise UsageError(f"--devices {beyond[0]}: there are {len(visible)} GPUs, numbered from 0")
    return [Device(visible[number], f"cuda:{number}") for number in numbers]


def _visible(environment: Mapping[str, str], driver: Path) -> list[str]:
    if VISIBLE in environment:
        return [name for name in environment[VISIBLE].split(",") if name.strip()]
    return [str(number) for number, _ in enumerate(driver.iterdir())] if driver.is_dir() else []
