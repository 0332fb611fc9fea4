"""Which device the workers of a cluster have, by what the caller asks for and what the cluster has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.device_kinds import KINDS
from inlinebench.errors import NoDevice
from inlinebench.options import RAY, Options
from inlinebench.ray.cluster import kind_in, on_worker


def cluster(gpus: int) -> Any:
    return SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0} | ({"GPU": float(gpus)} if gpus else {}))


@pytest.mark.parametrize(("gpus", "options", "found"), [
    (2, Options(), "cuda"), (0, Options(), "cpu"), (2, Options(device="cpu"), "cpu"),
    (2, Options(device="cuda"), "cuda"),
    (2, Options(devices=("all",)), "cuda"), (2, Options(devices=("cpu", "cpu")), "cpu"),
])
def test_the_kind_is_the_one_asked_for_or_else_a_gpu_if_there_is_one(gpus: int, options: Options, found: str) -> None:
    assert kind_in(cluster(gpus), options).name == found


@pytest.mark.parametrize("options", [Options(device="cuda"), Options(devices=("all",))])
def test_a_kind_that_the_cluster_lacks_is_an_error(options: Options) -> None:
    with pytest.raises(NoDevice, match="no GPU"):
        kind_in(cluster(0), options)


def test_a_worker_has_one_device_and_writes_no_results() -> None:
    there = on_worker(Options(devices=("cpu", "cpu"), executor=RAY, ray_address="auto", out=Path("out.jsonl"),
                              resume=True, seed=7), KINDS[-1])
    assert (there.device, there.devices, there.executor, there.ray_address) == ("cpu", (), "local", None)
    assert (there.out, there.resume, there.seed) == (None, False, 7)
