"""Devices by name, and a planted kind of device: one folder and one registration."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench import device_kinds, devices
from inlinebench.device_kinds import KINDS, DeviceKind, kind_of
from inlinebench.devices import registry
from inlinebench.devices.base import UnusableDevice
from inlinebench.devices.cpu.device import CpuDevice
from inlinebench.devices.cpu.target import CpuTarget
from inlinebench.devices.cuda.target import GpuTarget

PLANTED = DeviceKind("planted", times_are_comparable=True, runs_full_sizes=False, emulates_cuda=False, numbered=True)
DEVICE = """
import torch

class PlantedDevice:
    def __init__(self, torch_device):
        self.torch_device = torch_device

    @staticmethod
    def find(index):
        return torch.device("meta")

DEVICE = PlantedDevice
"""
TARGET = """
def target(architectures):
    return "builds for " + ",".join(architectures)

def installed(index):
    return (f"arch{index}",)
"""
WAKE = """
woken = []

def wake(index):
    woken.append(index)
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceKind:
    """A kind of device that is looked for first."""
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "device.py").write_text(DEVICE)
    (folder / "target.py").write_text(TARGET)
    (folder / "wake.py").write_text(WAKE)
    monkeypatch.setattr(devices, "__path__", [*devices.__path__, str(tmp_path)])
    for module in (device_kinds, registry):
        monkeypatch.setattr(module, "KINDS", (PLANTED, *KINDS))
    monkeypatch.setattr(registry, "DEVICE", rf"planted(:\d+)?|{registry.DEVICE}")
    return PLANTED


def test_a_planted_kind_needs_a_folder_and_a_registration(planted: DeviceKind) -> None:
    assert registry.resolve("auto") == registry.resolve("planted:3") == torch.device("meta")
    assert registry.target_for(planted, ["a", "b"]) == "builds for a,b"
    assert registry.installed("planted:2") == ("arch2",)
    registry.wake("planted:1")
    assert registry._module(planted, "wake").woken == [1]


@pytest.mark.parametrize(("name", "kind"), [("cpu", "cpu"), ("cuda", "cuda"), ("cuda:7", "cuda"), ("auto", "cuda")])
def test_the_kind_of_a_device_follows_from_its_name(name: str, kind: str) -> None:
    assert kind_of(name).name == kind


@pytest.mark.parametrize("name", ["", "gpu", "cudas", "CPU"])
def test_other_names_have_no_kind(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a device"):
        kind_of(name)


def test_the_cpu_is_found_and_kept() -> None:
    assert registry.resolve("cpu") == torch.device("cpu")
    assert isinstance(registry.of(torch.device("cpu")), CpuDevice)
    assert registry.of(torch.device("cpu")) is registry.of(torch.device("cpu"))


@pytest.mark.parametrize("name", ["cpu:0", "cuda:x", "gpu", "cuda:-1", ""])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(UnusableDevice, match="use auto, cuda, cuda:N or cpu"):
        registry.resolve(name)


def test_each_kind_builds_for_itself() -> None:
    assert isinstance(registry.target_for(kind_of("cpu"), ()), CpuTarget)
    assert isinstance(registry.target_for(kind_of("cuda"), ("90",)), GpuTarget)
    assert registry.installed("cpu") == ()
