"""A candidate sees no other GPU than the one under test."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.sandbox.gpu import Gpu, only
from inlinebench.sandbox.policy import devices

ONE, TWO = "GPU-5f0c0b6c-aaaa-bbbb-cccc-000000000001", "GPU-5f0c0b6c-aaaa-bbbb-cccc-000000000002"


def listed(folder: Path, *uuids: str) -> Path:
    """Writes what the driver tells about these GPUs."""
    for number, uuid in enumerate(uuids):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "information").write_text(
            f"Model: \t\t NVIDIA H100\nIRQ:   \t\t 31\nGPU UUID: \t {uuid}\nDevice Minor: \t {number}\n")
    return folder


@pytest.mark.parametrize("uuid", [TWO, TWO.removeprefix("GPU-")])
def test_a_gpu_is_found_by_its_uuid_and_is_the_first_one_of_a_candidate(tmp_path: Path, uuid: str) -> None:
    assert only("cuda:1", uuid, listed(tmp_path, ONE, TWO)) == Gpu("cuda:0", TWO, ("/dev/nvidia0",))


@pytest.mark.parametrize("uuid", ["MIG-5f0c0b6c-aaaa", "GPU-5f0c"])
def test_what_the_driver_does_not_list_is_not_told_apart(tmp_path: Path, uuid: str) -> None:
    assert only("cuda:1", uuid, listed(tmp_path / "gpus", ONE, TWO)) == Gpu("cuda:1")
    assert only("cuda:1", ONE, tmp_path / "none") == Gpu("cuda:1")


def test_the_only_gpu_of_a_machine_keeps_its_name(tmp_path: Path) -> None:
    assert only("cuda:0", ONE, listed(tmp_path, ONE)) == Gpu("cuda:0")


def test_without_a_gpu_no_device_file_of_one_is_open() -> None:
    assert not [path for path in devices() if "nvidia" in path or "dri" in path]
