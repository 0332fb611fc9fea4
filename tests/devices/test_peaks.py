from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compile import toolchain
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.devices.cuda import peaks as module
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.devices.cuda.peaks import REPEATS, PeaksKey, Sizes, cached, key_of, measure
from inlinebench.devices.cuda.target import CLOCK_SOURCE
from inlinebench.timing.call import Sample
from inlinebench.timing.peaks import METHODS, Peaks
from inlinebench.timing.trace import Activity

Value = TypeVar("Value")
CPU = torch.device("cpu")
TINY = Sizes(copy_bytes=4096, side=16, double_side=8)
H100 = Peaks(4.9e12, {"float32": 5e13, "tf32": 4e14, "float16": 7.5e14, "bfloat16": 7.8e14, "float64": 6e13})
KEY = PeaksKey(uuid="8c5d-0001", gpu="Some GPU", torch="2.13.0", driver="580.1", max_sm_mhz=1980, power_w=700)

ORDER = ("float64", "float32", "tf32", "bfloat16")

speeds = st.floats(1e-3, 1e18)
kinds = st.dictionaries(st.sampled_from(sorted(METHODS)), speeds)


@pytest.fixture(autouse=True)
def new_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures the CPU as if it was a GPU with all kinds of products."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))



class FakeClock(CpuClock):
    """Returns these times in ms in turn, then the last one forever, and records whether TF32 was on at each start."""

    def __init__(self, *times: float) -> None:
        super().__init__()
        self.times = list(times)
        self.tf32: list[bool] = []

    def start(self) -> None:  # type: ignore[override]
        self.tf32.append(torch.backends.cuda.matmul.allow_tf32)

    def stop(self) -> None:  # type: ignore[override]
        """Does nothing."""

    def drain(self) -> Sample:
        return Sample(self.times.pop(0) if len(self.times) > 1 else self.times[0], 0.0, blocked=True)


def test_a_copy_counts_reads_and_writes_and_a_product_two_operations_per_term() -> None:
    peaks = measure(FakeClock(2.0), CPU, TINY)
    assert peaks.copy_bytes_s == pytest.approx(2 * 4096 / 2e-3)
    assert peaks.matmul == pytest.approx({
        "float32": 2 * 16**3 / 2e-3, "tf32": 2 * 16**3 / 2e-3, "float16": 2 * 16**3 / 2e-3,
        "bfloat16": 2 * 16**3 / 2e-3, "float64": 2 * 8**3 / 2e-3,
    })


def test_the_best_repetition_of_the_best_method_counts() -> None:
    slow_way, fast_way = [3.0] * REPEATS, [9.0] * (REPEATS - 1) + [1.0]
    peaks = measure(FakeClock(*slow_way, *fast_way, 5.0), CPU, TINY)
    assert peaks.matmul["float32"] == pytest.approx(2 * 16**3 / 1e-3)
    assert peaks.copy_bytes_s == pytest.approx(2 * 4096 / 5e-3)


def test_slow_work_is_repeated_less() -> None:
    clock = FakeClock(1e3)
    measure(clock, CPU, TINY)
    assert len(clock.tf32) == 2 * 6  # two methods for each of five products and the copy, once


@pytest.fixture
def set_tf32() -> Iterator[Callable[[bool], None]]:
    """Sets TF32 for one test. monkeypatch cannot, because torch's settings are not plain attributes."""
    def setting(allowed: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = allowed

    before = torch.backends.cuda.matmul.allow_tf32
    yield setting
    setting(before)


@pytest.mark.parametrize("found", [True, False])
def test_tf32_is_on_for_its_own_products_only_and_then_restored(
    set_tf32: Callable[[bool], None], found: bool
) -> None:
    set_tf32(found)
    clock = FakeClock(1.0)
    measure(clock, CPU, TINY)
    each = 2 * REPEATS
    assert clock.tf32 == [False] * each + [True] * each + [False] * 3 * each + [found] * each
    assert torch.backends.cuda.matmul.allow_tf32 is found


def test_tf32_is_restored_when_measuring_fails(set_tf32: Callable[[bool], None]) -> None:
    class Broken(FakeClock):
        def drain(self) -> Sample:
            if self.tf32[-1]:
                raise RuntimeError("planted")
            return super().drain()

    set_tf32(False)
    with pytest.raises(RuntimeError, match="planted"):
        measure(Broken(1.0), CPU, TINY)
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_measuring_does_not_use_the_global_random_generator() -> None:
    before = torch.get_rng_state()
    measure(FakeClock(1.0), CPU, TINY)
    assert torch.equal(before, torch.get_rng_state())


def test_the_cpu_clock_measures_plausible_speeds() -> None:
    peaks = measure(CpuClock(), CPU, replace(TINY, copy_bytes=1 << 20, side=64, double_side=64))
    assert set(peaks.matmul) == set(METHODS)
    assert 1e6 < peaks.copy_bytes_s < 1e14


@pytest.mark.parametrize(("capability", "without"), [((7, 5), {"tf32", "bfloat16"}), ((8, 0), set()), ((9, 0), set())])
def test_kinds_that_an_old_gpu_lacks_are_omitted(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], without: set[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert set(METHODS) - set(module._kinds(torch.device("cuda", 0))) == without


@given(st.integers(0, 1 << 40))
def test_sizes_fit_into_half_of_the_free_memory(free: int) -> None:
    fitted = Sizes().within(free)
    assert fitted.copy_bytes <= Sizes().copy_bytes and fitted.side <= Sizes().side
    if free >= 1 << 21:
        taken = (2 * fitted.copy_bytes, 3 * 4 * fitted.side**2, 3 * 8 * fitted.double_side**2)
        assert max(taken) <= max(free // 2, 3 * 8 * module.SMALLEST_SIDE**2)
    if free >= 1 << 33:
        assert fitted == Sizes()


def test_float32_takes_the_best_of_its_own_units_and_split_operands() -> None:
    def rate(**speeds: float) -> tuple[float, str]:
        found = Peaks(1.0, {"float32": 10.0, **speeds}).fastest("float32")
        assert found is not None
        return found.flops_s, found.method

    assert rate() == (10.0, "float32")
    assert rate(tf32=27.0, bfloat16=54.0) == (10.0, "float32")
    assert rate(tf32=60.0, bfloat16=96.0) == (20.0, "3 products of tf32")
    assert rate(tf32=60.0, bfloat16=240.0) == (40.0, "6 products of bfloat16")
    assert rate(tf32=60.0, bfloat16=120.0, float16=120.0) == (40.0, "3 products of float16")


@pytest.mark.parametrize("accuracy", ["int8", "float8_e4m3fn", ""])
def test_an_unmeasured_accuracy_has_no_rate(accuracy: str) -> None:
    assert H100.fastest(accuracy) is None


@given(kinds)
def test_lower_accuracy_is_never_slower(matmul: dict[str, float]) -> None:
    peaks = Peaks(1.0, matmul)
    rates = [found.flops_s if (found := peaks.fastest(name)) else 0.0 for name in ORDER]
    assert rates == sorted(rates)


@given(kinds, st.sampled_from(sorted(METHODS)), speeds)
def test_a_faster_unit_never_slows_an_accuracy_down(matmul: dict[str, float], kind: str, speed: float) -> None:
    faster = Peaks(1.0, {**matmul, kind: max(speed, matmul.get(kind, 0.0))})
    for accuracy in METHODS:
        if (before := Peaks(1.0, matmul).fastest(accuracy)) is not None:
            after = faster.fastest(accuracy)
            assert after is not None and after.flops_s >= before.flops_s


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan, math.inf, 3, True, "fast", None])
def test_invalid_speeds_raise(speed: object) -> None:
    with pytest.raises(ValueError, match="not a positive finite speed"):
        Peaks(speed, {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a positive finite speed"):
        Peaks(1.0, {"float32": speed})  # type: ignore[dict-item]


def test_an_unknown_kind_raises() -> None:
    with pytest.raises(ValueError, match="int8"):
        Peaks(1.0, {"int8": 1.0})


def test_peaks_are_formatted_in_one_line() -> None:
    assert str(H100) == (
        "copy 4900 GB/s read and written, float64 60 TFLOP/s, "
        "float32 250 TFLOP/s (3 products of float16), tf32 750 TFLOP/s (float16), float16 750 TFLOP/s, "
        "bfloat16 780 TFLOP/s, empty kernel: unknown"
    )
    assert str(replace(H100, null_ms=0.0010544)).endswith("empty kernel: 1.05 µs")


def never() -> Peaks:
    raise AssertionError("measured again")


def entry(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_peaks_are_measured_once_per_key(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "peaks"
    assert cached(folder, KEY, lambda: H100) == H100
    assert cached(folder, KEY, never) == H100
    assert stat.S_ISREG(entry(folder).stat().st_mode)


@pytest.mark.parametrize("changed", [
    {"uuid": "8c5d-0002"}, {"gpu": "Other"}, {"torch": "2.14.0"}, {"driver": None}, {"max_sm_mhz": 1755},
    {"max_memory_mhz": 1}, {"set_sm_mhz": 1200}, {"set_memory_mhz": 1}, {"power_w": 350},
])
def test_every_fact_of_the_key_separates_peaks(tmp_path: Path, changed: dict[str, object]) -> None:
    cached(tmp_path, KEY, lambda: H100)
    slower = replace(H100, copy_bytes_s=1e12)
    other = replace(KEY, **changed)  # type: ignore[arg-type]
    assert cached(tmp_path, other, lambda: slower) == slower
    assert cached(tmp_path, KEY, never) == H100


def test_a_new_procedure_measures_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(tmp_path, KEY, lambda: H100)
    monkeypatch.setattr(module, "PROCEDURE", module.PROCEDURE + 1)
    slower = replace(H100, copy_bytes_s=1e12)
    assert cached(tmp_path, KEY, lambda: slower) == slower


DAMAGE: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "cut off": lambda text: text[: len(text) // 2],
    "not JSON": lambda text: "\x00" + text,
    "a list": lambda text: "[]",
    "a number": lambda text: "3",
    "an empty object": lambda text: "{}",
    "deeply nested": lambda text: "[" * 100_000,
    "one digit of a speed": lambda text: text.replace("4900000000000.0", "9900000000000.0"),
    "an invalid speed": lambda text: text.replace("4900000000000.0", "NaN"),
    "another key": lambda text: text.replace(KEY.uuid, "8c5d-0009"),
}


@pytest.mark.parametrize("how", sorted(DAMAGE))
def test_a_damaged_file_is_measured_again_and_replaced(tmp_path: Path, how: str) -> None:
    cached(tmp_path, KEY, lambda: H100)
    sound = entry(tmp_path).read_text()
    damaged = DAMAGE[how](sound)
    assert damaged != sound
    entry(tmp_path).write_text(damaged)
    slower = replace(H100, copy_bytes_s=1e12)
    assert cached(tmp_path, KEY, lambda: slower) == slower
    assert cached(tmp_path, KEY, never) == slower


def test_a_file_that_is_not_text_is_measured_again(tmp_path: Path) -> None:
    cached(tmp_path, KEY, lambda: H100)
    entry(tmp_path).write_bytes(b"\xff\xfe\x80")
    assert cached(tmp_path, KEY, lambda: H100) == H100


def test_invalid_values_with_a_valid_checksum_are_measured_again(tmp_path: Path) -> None:
    cached(tmp_path, KEY, lambda: H100)
    forged = json.loads(entry(tmp_path).read_text())
    forged["peaks"]["copy_bytes_s"] = -1.0
    forged["sha256"] = module._digest(forged["peaks"])
    entry(tmp_path).write_text(json.dumps(forged))
    assert cached(tmp_path, KEY, lambda: H100) == H100


def test_a_folder_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cached(tmp_path / "file" / "peaks", KEY, lambda: H100) == H100


def test_a_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    assert cached(tmp_path, KEY, lambda: H100) == H100
    assert not list(tmp_path.iterdir())


def test_errors_of_measuring_propagate_and_nothing_is_stored(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="measured again"):
        cached(tmp_path, KEY, never)
    assert not list(tmp_path.iterdir())


@given(kinds, speeds, st.none() | st.floats(1e-6, 1.0))
def test_stored_peaks_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, matmul: dict[str, float], copied: float, null_ms: float | None
) -> None:
    folder = tmp_path_factory.mktemp("peaks")
    cached(folder, KEY, lambda: Peaks(copied, matmul, null_ms))
    assert cached(folder, KEY, never) == Peaks(copied, matmul, null_ms)


def test_peaks_without_cupti_are_not_used_with_cupti(tmp_path: Path) -> None:
    cached(tmp_path, KEY, lambda: H100)
    with_cupti = replace(KEY, cupti=True)
    assert cached(tmp_path, with_cupti, lambda: replace(H100, null_ms=0.001)).null_ms == 0.001
    assert cached(tmp_path, with_cupti, never).null_ms == 0.001


def test_a_failure_of_cupti_is_not_stored(tmp_path: Path) -> None:
    with_cupti = replace(KEY, cupti=True)
    assert cached(tmp_path, with_cupti, lambda: H100).null_ms is None
    assert cached(tmp_path, with_cupti, lambda: replace(H100, null_ms=0.001)).null_ms == 0.001


@pytest.mark.parametrize("null_ms", [0.0, -1.0, math.inf, math.nan])
def test_an_invalid_duration_of_the_empty_kernel_raises(null_ms: float) -> None:
    with pytest.raises(ValueError, match="not a positive finite speed or time"):
        replace(H100, null_ms=null_ms)


def test_the_duration_of_the_empty_kernel_comes_from_the_tracer() -> None:
    def tracer(work: Callable[[], Value], /) -> tuple[Value, list[Activity]]:
        return work(), [Activity("inlinebench_null()", 10.0, 11.25)]

    assert measure(FakeClock(2.0), CPU, TINY, tracer).null_ms == pytest.approx(0.00125)
    assert measure(FakeClock(2.0), CPU, TINY).null_ms is None


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> PeaksKey:
    """Returns the key of a GPU on a machine with this nvidia-smi."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    properties = SimpleNamespace(uuid="8c5d-0001", name="Some GPU")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    return key_of(torch.device("cuda", 0))


def test_a_key_has_the_facts_of_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[ "$1" = --id=GPU-8c5d-0001 ] && echo "580.1, 1980, 2619, 1755, [N/A], 699.95"'
    assert nvidia_smi(tmp_path, monkeypatch, script) == PeaksKey(
        "8c5d-0001", "Some GPU", str(torch.__version__), "580.1", 1980, 2619, 1755, None, 700
    )


@pytest.mark.parametrize("script", ["exit 9", "echo", "echo 'No devices were found'", "echo 1, 2, 3", "kill -9 $$"])
def test_facts_that_nvidia_smi_does_not_report_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    assert nvidia_smi(tmp_path, monkeypatch, script) == PeaksKey("8c5d-0001", "Some GPU", str(torch.__version__))


@pytest.mark.gpu
def test_a_gpu_is_measured_in_seconds_and_its_memory_is_freed(tmp_path: Path) -> None:
    library, device = tmp_path / "clock.so", torch.device("cuda", 0)
    flags = ["-shared", "-Xcompiler", "-fPIC", "-arch=native"]
    subprocess.run([toolchain.nvcc(), *flags, "-o", str(library), str(CLOCK_SOURCE)], check=True)
    clock = GpuClock(library, 0, FlagPage())
    measure(clock, device)  # cuBLAS keeps a workspace from here on
    reserved, begin = torch.cuda.memory_reserved(device), time.perf_counter()
    peaks = measure(clock, device)
    assert time.perf_counter() - begin < 10
    assert torch.cuda.memory_reserved(device) <= reserved
    assert 5e10 < peaks.copy_bytes_s < 5e13
    assert all(5e10 < speed < 5e16 for speed in peaks.matmul.values())
    again = measure(clock, device)
    for kind, speed in peaks.matmul.items():
        assert again.matmul[kind] == pytest.approx(speed, rel=0.1)
    assert again.copy_bytes_s == pytest.approx(peaks.copy_bytes_s, rel=0.05)
    key = key_of(device)
    assert key.uuid and key.driver
