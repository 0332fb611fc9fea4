from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.records.errors import NoDevice, UsageError
from inlinebench.scheduler.devices import Place, places


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """Three GPUs, as the driver shows them."""
    for number in range(3):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
    return tmp_path


def test_one_place_unless_more_are_asked_for(driver: Path) -> None:
    assert places(parse([], {}), {}, driver) == [Place()]
    assert places(parse(["--devices", "cpu,cpu"], {}), {}, driver) == [Place(), Place()]


def test_gpus_by_number_and_all_of_them(driver: Path) -> None:
    assert places(parse(["--devices", "2,0"], {}), {}, driver) == [Place("2", "cuda:2"), Place("0", "cuda:0")]
    assert [place.label for place in places(parse(["--devices", "all"], {}), {}, driver)] == [
        "cuda:0", "cuda:1", "cuda:2"
    ]


def test_numbers_count_among_the_visible_ones(driver: Path) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}
    assert places(parse(["--devices", "1"], {}), environment, driver) == [Place("GPU-a", "cuda:1")]


def test_a_gpu_that_is_not_there_is_named(driver: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--devices 3: there are 3 GPUs"):
        places(parse(["--devices", "0,3"], {}), {}, driver)
    with pytest.raises(NoDevice, match="no NVIDIA GPU"):
        places(parse(["--devices", "all"], {}), {"CUDA_VISIBLE_DEVICES": ""}, driver)
    with pytest.raises(NoDevice, match="no NVIDIA GPU"):
        places(parse(["--devices", "0"], {}), {}, tmp_path / "missing")


def test_one_device_and_several_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude"):
        parse(["--device", "cuda", "--devices", "0,1"], {})


@pytest.mark.parametrize("text", ["", "x", "0,0", "cpu,0", "all,0", "-1"])
def test_lists_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(SystemExit):
        parse(["--devices", text], {})
