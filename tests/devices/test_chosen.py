from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.devices.chosen import JudgeDevice, chosen
from inlinebench.errors import NoDevice, UsageError


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A machine with three GPUs, as NVIDIA's driver lists them."""
    for number in range(3):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
    return tmp_path


def test_there_is_one_device_unless_options_name_several(driver: Path) -> None:
    assert chosen(parse([], {}), {}, driver) == [JudgeDevice()]
    assert chosen(parse(["--devices", "cpu,cpu"], {}), {}, driver) == [JudgeDevice(), JudgeDevice()]


def test_gpus_are_chosen_by_number_or_all_of_them(driver: Path) -> None:
    both = [JudgeDevice("2", "cuda:2"), JudgeDevice("0", "cuda:0")]
    assert chosen(parse(["--devices", "2,0"], {}), {}, driver) == both
    assert [device.label for device in chosen(parse(["--devices", "all"], {}), {}, driver)] == [
        "cuda:0", "cuda:1", "cuda:2"
    ]


def test_gpu_numbers_refer_to_the_visible_gpus(driver: Path) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}
    assert chosen(parse(["--devices", "1"], {}), environment, driver) == [JudgeDevice("GPU-a", "cuda:1")]


def test_the_error_for_a_missing_gpu_names_it(driver: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--devices 3: there are 3 GPUs"):
        chosen(parse(["--devices", "0,3"], {}), {}, driver)
    with pytest.raises(NoDevice, match="no NVIDIA GPU"):
        chosen(parse(["--devices", "all"], {}), {"CUDA_VISIBLE_DEVICES": ""}, driver)
    with pytest.raises(NoDevice, match="no NVIDIA GPU"):
        chosen(parse(["--devices", "0"], {}), {}, tmp_path / "missing")


def test_device_and_devices_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude"):
        parse(["--device", "cuda", "--devices", "0,1"], {})


@pytest.mark.parametrize("text", ["", "x", "0,0", "cpu,0", "all,0", "-1"])
def test_an_invalid_list_of_devices_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="--devices"):
        parse(["--devices", text], {})
