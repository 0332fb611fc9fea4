"""Finds the implementation of a device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inlinebench.device_kinds import KINDS, DeviceKind, kind_of
from inlinebench.options.kinds import DEVICE, DEVICES_TEXT

if TYPE_CHECKING:
    import torch

    from inlinebench.compile.target import Target
    from inlinebench.devices.base import Device


@cache
def of(device: torch.device) -> Device:
    """Returns the implementation for one of PyTorch's devices. Raises ValueError if there is none."""
    found: Device = _class(kind_of(device.type))(device)
    return found


def resolve(wanted: str) -> torch.device:
    """Returns the device for `auto`, `cpu`, `cuda` or `cuda:N`. Raises UnusableDevice if there is none."""
    from inlinebench.devices.base import UnusableDevice

    if wanted == "auto":
        return _first()
    if not re.fullmatch(DEVICE, wanted):
        raise UnusableDevice(f"--device {wanted} is not a device; use {DEVICES_TEXT}")
    found: torch.device = _class(kind_of(wanted)).find(_index(wanted))
    return found


def wake(wanted: str) -> None:
    """Starts the driver of a device (`auto`, `cpu`, `cuda`, `cuda:N`) in the background, if that saves time."""
    if re.fullmatch(DEVICE, wanted):  # others are refused by `resolve`
        _module(kind_of(wanted), "wake").wake(_index(wanted))


def target_for(kind: DeviceKind, architectures: Sequence[str]) -> Target:
    """Returns what builds for this kind of device, and for these architectures, if it has any."""
    target: Target = _module(kind, "target").target(architectures)
    return target


def installed(wanted: str) -> tuple[str, ...]:
    """Returns the architectures of a device (`auto`, `cpu`, `cuda`, `cuda:N`). Empty on the CPU. Raises NoGpu."""
    found: tuple[str, ...] = _module(kind_of(wanted), "target").installed(_index(wanted))
    return found


def _first() -> torch.device:
    from inlinebench.devices.base import UnusableDevice

    for kind in KINDS[:-1]:
        try:
            found: torch.device = _class(kind).find(0)
        except UnusableDevice:
            continue
        return found
    last: torch.device = _class(KINDS[-1]).find(0)
    return last


def _class(kind: DeviceKind) -> Any:
    return _module(kind, "device").DEVICE


def _module(kind: DeviceKind, name: str) -> Any:
    return import_module(f"inlinebench.devices.{kind.name}.{name}")


def _index(wanted: str) -> int:
    return int(wanted.partition(":")[2] or 0)
