"""The kinds of devices that solutions are evaluated on, and what the whole harness has to know about each.

A kind is implemented in the folder of `inlinebench.devices` that has its name. This module imports no torch, because
the scheduler and reports use it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device."""

    name: str
    """The type of PyTorch's device (`cuda` of `cuda:0`)."""
    times_are_comparable: bool
    """Whether times on it say how fast a solution is. If so, only one solution at a time is evaluated on a device."""
    runs_full_sizes: bool
    """Whether problems are evaluated with the sizes of their files, which are meant for GPUs, or with smaller ones."""
    emulates_cuda: bool
    """Whether CUDA sources are translated for it, and run under a runtime that checks them."""
    numbered: bool
    """Whether a machine may have several, told apart by numbers (`cuda:1`)."""
    ray_resource: str | None = None
    """The resource of a Ray cluster that counts such devices. None if each worker has one."""


KINDS = (
    DeviceKind("cuda", times_are_comparable=True, runs_full_sizes=True, emulates_cuda=False, numbered=True,
               ray_resource="GPU"),
    DeviceKind("cpu", times_are_comparable=False, runs_full_sizes=False, emulates_cuda=True, numbered=False),
)
"""All kinds, in the order in which `--device auto` looks for a device."""


def kind_of(device: str) -> DeviceKind:
    """Returns the kind of a device by its name (`cpu`, `cuda`, `cuda:0`); of `auto`, the first one.

    Raises ValueError for another name.
    """
    found = KINDS[0] if device == "auto" else known_kind(device)
    if found is None:
        raise ValueError(f"{device!r} is not the name of a device")
    return found


def known_kind(device: str) -> DeviceKind | None:
    """Returns the kind of a device by its name. None for another name, as a result file may have it."""
    name = device.partition(":")[0]
    return next((kind for kind in KINDS if kind.name == name), None)
