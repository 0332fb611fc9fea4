"""Tests of a worker of Ray's without Ray."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from inlinebench.device_kinds import KINDS
from inlinebench.errors import NoDevice
from inlinebench.options import Options
from inlinebench.ray.device_worker import RayDeviceWorker


class DiedAtStart(Exception):
    """An error of Ray's, whose last line is that of the worker."""


def test_the_reason_why_a_worker_could_not_start_is_the_workers_own() -> None:
    ray = MagicMock()
    ray.exceptions.RayError = DiedAtStart
    ray.get.side_effect = DiedAtStart("The actor died in its creation task\n   ^^^^\nModuleNotFoundError: no torch\n")
    with pytest.raises(NoDevice, match=r"^a Ray worker could not start: ModuleNotFoundError: no torch$"):
        RayDeviceWorker(ray, Options(), KINDS[-1], 0).open(1.0)
