"""The Ray cluster: how it is joined, and what its workers evaluate on."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

from inlinebench.device_kinds import KINDS, DeviceKind, kind_of
from inlinebench.errors import NoDevice, UsageError
from inlinebench.options import Options
from inlinebench.options.kinds import ALL_DEVICES

OBJECTS_BYTES = 128 << 20
"""Shared memory of a Ray that is started here. Sources and results are small."""


def joined(address: str | None) -> tuple[Any, bool]:
    """Returns the module `ray`, connected to a cluster, and whether this call connected it.

    A process that is connected, such as a worker of Ray's, stays so. Otherwise the cluster is that at the address, or
    one that is started here. Raises UsageError if Ray is not installed or the cluster cannot be joined.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError("Ray is not installed; run pip install 'inlinebench[ray]'") from error
    if ray.is_initialized():
        return ray, False
    started_here: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECTS_BYTES}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **({} if address else started_here))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"the Ray cluster at {address} cannot be joined: {first_line(error)}") from error
    return ray, True


def kind_in(ray: Any, options: Options) -> DeviceKind:
    """Returns the kind of device of the workers. Raises NoDevice if the cluster lacks a kind that is asked for."""
    wanted = options.devices[0] if options.devices else options.device
    kind = KINDS[0] if wanted == ALL_DEVICES else kind_of(wanted)
    if kind.ray_resource is None or ray.cluster_resources().get(kind.ray_resource, 0) >= 1:
        return kind
    if options.device != "auto" or options.devices:
        raise NoDevice("the Ray cluster has no GPU; use --device cpu to run CUDA sources on the CPU")
    return KINDS[-1]


def on_worker(options: Options, kind: DeviceKind) -> Options:
    """Returns the options of a run for one of its workers, which has one device and writes no files of results."""
    return replace(options, device=kind.name, devices=(), executor="local", ray_address=None, out=None, junit=None,
                   resume=False, quiet=True, verbose=False)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text. Ray's errors go on with facts about the worker."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
