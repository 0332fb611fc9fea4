from __future__ import annotations

import os
import statistics
import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.devices.cuda import state as gpu_state
from inlinebench.devices.cuda.state import SLOWDOWNS, GpuSample, GpuWatch, NoGpuState, dropped, drops, flags, summarize
from inlinebench.results.times import GpuState, Spread

UUID = "0f3c2a10-1111-2222-3333-444455556666"
OURS = os.getpid()
NONE_OF_OURS = 1 << 30  # above the largest PID of Linux


class NVMLError(Exception):
    pass


class NotSupported(NVMLError):
    pass


class FunctionNotFound(NVMLError):
    pass


class LibraryMismatch(Exception):
    """Not an NVMLError, as in pynvml."""


@dataclass
class FakeNvml:
    """pynvml with one GPU. `refused` maps functions to the errors that they raise."""

    refused: dict[str, Exception] = field(default_factory=dict)
    reasons: int = 0
    pids: list[int] = field(default_factory=lambda: [OURS])
    opened: int = 0

    NVMLError = NVMLError
    NVMLError_NotSupported = NotSupported
    NVMLError_FunctionNotFound = FunctionNotFound
    NVMLLibraryMismatchError = LibraryMismatch
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def _reply(self, function: str, reply: Any) -> Any:
        assert self.opened, "called while closed"
        if function in self.refused:
            raise self.refused[function]
        return reply

    def nvmlInit(self) -> None:
        if "nvmlInit" in self.refused:
            raise self.refused["nvmlInit"]
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1
        if "nvmlShutdown" in self.refused:
            raise self.refused["nvmlShutdown"]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != f"GPU-{UUID}":
            raise NVMLError("Not Found")
        return str(self._reply("nvmlDeviceGetHandleByUUID", "handle"))

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> Any:
        return self._reply("nvmlDeviceGetClockInfo", {1: 1980, 2: 2619}[kind])

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> Any:
        return self._reply("nvmlDeviceGetTemperature", 41)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> Any:
        return self._reply("nvmlDeviceGetPowerUsage", 123_400)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> Any:
        return self._reply("nvmlDeviceGetCurrentClocksEventReasons", self.reasons)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> Any:
        return self._reply("nvmlDeviceGetCurrentClocksThrottleReasons", self.reasons)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> Any:
        processes = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self.pids]
        return self._reply("nvmlDeviceGetComputeRunningProcesses", processes)


SAMPLE = GpuSample(1980.0, 2619.0, 41.0, 123.4, ())


@pytest.fixture(params=[True, False], ids=["bare", "container"])
def bare(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(gpu_state, "in_first_process_namespace", lambda: request.param)
    return bool(request.param)


@pytest.mark.parametrize("uuid", [UUID, f"GPU-{UUID}"])
def test_a_sample_has_the_documented_units(uuid: str) -> None:
    assert GpuWatch(uuid, FakeNvml()).sample() == SAMPLE


@pytest.mark.parametrize(("bit", "name"), SLOWDOWNS.items())
def test_every_slowdown_is_named(bit: int, name: str) -> None:
    assert GpuWatch(UUID, FakeNvml(reasons=bit)).sample().throttled == (name,)


@pytest.mark.parametrize("bits", [0, 0x01, 0x02, 0x100, 0x103, 0x200, 0x400, 1 << 40])
def test_an_idle_gpu_and_user_set_clocks_are_not_throttling(bits: int) -> None:
    assert GpuWatch(UUID, FakeNvml(reasons=bits)).sample().throttled == ()


@given(st.integers(0, 2**64 - 1))
def test_slowdowns_are_named_by_their_bits(bits: int) -> None:
    named = GpuWatch(UUID, FakeNvml(reasons=bits)).sample().throttled
    assert sum(bit for bit, name in SLOWDOWNS.items() if name in named) == bits & 0xFC


def test_throttling_is_read_by_its_older_name_if_the_driver_lacks_the_newer() -> None:
    nvml = FakeNvml({"nvmlDeviceGetCurrentClocksEventReasons": FunctionNotFound()}, reasons=0x40)
    assert GpuWatch(UUID, nvml).sample().throttled == ("hardware thermal slowdown",)


def test_throttling_is_read_by_its_older_name_if_the_binding_lacks_the_newer() -> None:
    class OldBinding(FakeNvml):
        @property
        def nvmlDeviceGetCurrentClocksEventReasons(self) -> Any:  # type: ignore[override]
            raise AttributeError

    assert GpuWatch(UUID, OldBinding(reasons=0x80)).sample().throttled == ("power brake",)


def test_a_gpu_without_power_sensor_has_no_power() -> None:
    assert GpuWatch(UUID, FakeNvml({"nvmlDeviceGetPowerUsage": NotSupported()})).sample() == replace(
        SAMPLE, power_w=None
    )


@pytest.mark.parametrize(
    ("function", "error", "named"),
    [
        ("nvmlInit", NVMLError("NVML Shared Library Not Found"), "NVML Shared Library Not Found.*'utility'"),
        ("nvmlDeviceGetHandleByUUID", NVMLError("Not Found"), f"GPU-{UUID}: Not Found"),
        ("nvmlDeviceGetClockInfo", NotSupported("Not Supported"), "clocks: Not Supported"),
        ("nvmlDeviceGetTemperature", NotSupported("Not Supported"), "temperature: Not Supported"),
        ("nvmlDeviceGetPowerUsage", NVMLError("GPU is lost"), "power: GPU is lost"),
        ("nvmlDeviceGetCurrentClocksEventReasons", NotSupported("Not Supported"), "throttling: Not Supported"),
    ],
)
def test_an_unreadable_gpu_raises_with_the_cause_and_closes_nvml(
    function: str, error: Exception, named: str
) -> None:
    nvml = FakeNvml({function: error})
    with pytest.raises(NoGpuState, match=named):
        GpuWatch(UUID, nvml)
    assert nvml.opened == 0


def test_an_unknown_device_raises_with_its_uuid() -> None:
    with pytest.raises(NoGpuState, match="GPU-another: Not Found"):
        GpuWatch("another", FakeNvml())


def test_a_lost_gpu_raises_at_the_next_sample_and_can_be_closed() -> None:
    nvml = FakeNvml()
    watch = GpuWatch(UUID, nvml)
    nvml.refused |= {name: NVMLError("GPU is lost") for name in ("nvmlDeviceGetClockInfo", "nvmlShutdown")}
    with pytest.raises(NoGpuState, match="GPU is lost"):
        watch.sample()
    watch.close()


def test_closing_twice_shuts_nvml_down_once() -> None:
    nvml = FakeNvml()
    first, second = GpuWatch(UUID, nvml), GpuWatch(UUID, nvml)
    first.close()
    first.close()
    assert (nvml.opened, second.sample()) == (1, SAMPLE)


def test_a_missing_pynvml_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoGpuState, match=r"pip install 'inlinebench\[gpu\]'"):
        GpuWatch(UUID)


def test_pynvml_is_the_default_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())  # type: ignore[arg-type]
    assert GpuWatch(UUID).sample() == SAMPLE


@pytest.mark.parametrize(
    ("pids", "own", "others"),
    [
        ([OURS, 10, 11], [], 2),
        ([OURS, 10, 11], [10], 1),
        ([OURS, 10, 10, 10], [], 1),  # NVML may list a process once for each of its clients
        ([OURS, 10], [OURS, 11], 1),
    ],
)
def test_other_processes_are_counted(bare: bool, pids: list[int], own: list[int], others: int) -> None:
    assert GpuWatch(UUID, FakeNvml(pids=pids)).other_processes(own) == others


@pytest.mark.parametrize(("pids", "own"), [([OURS], []), ([OURS, 10, 11], [10, 11]), ([OURS], [10, OURS])])
def test_the_absence_of_other_processes_is_known_only_outside_containers(
    bare: bool, pids: list[int], own: list[int]
) -> None:
    assert GpuWatch(UUID, FakeNvml(pids=pids)).other_processes(own) == (0 if bare else None)


@pytest.mark.parametrize("pids", [[], [10], [10, NONE_OF_OURS]])
def test_pids_without_this_process_belong_to_another_namespace(bare: bool, pids: list[int]) -> None:
    assert GpuWatch(UUID, FakeNvml(pids=pids)).other_processes([10]) is None


@pytest.mark.parametrize("error", [NotSupported(), NVMLError("Insufficient Permissions"), LibraryMismatch()])
def test_other_processes_are_unknown_if_nvml_does_not_list_them(bare: bool, error: Exception) -> None:
    nvml = FakeNvml({"nvmlDeviceGetComputeRunningProcesses": error})
    assert GpuWatch(UUID, nvml).other_processes([]) is None


@pytest.mark.parametrize(("link", "first"), [("pid:[4026531836]", True), ("pid:[4026532221]", False), (None, False)])
def test_the_first_process_namespace_is_recognized_by_its_number(
    monkeypatch: pytest.MonkeyPatch, link: str | None, first: bool
) -> None:
    def readlink(path: str) -> str:
        if link is None:
            raise FileNotFoundError(path)
        return link

    monkeypatch.setattr(os, "readlink", readlink)
    assert gpu_state.in_first_process_namespace() is first


def at(*clocks: float, throttled: tuple[str, ...] = ()) -> list[GpuSample]:
    return [replace(SAMPLE, sm_mhz=clock, throttled=throttled) for clock in clocks]


CAP = ("software power cap",)


def test_a_summary_covers_all_samples() -> None:
    samples = [GpuSample(1900.0 + call, 2619.0, 40.0 + call, 100.0 + call) for call in range(21)]
    assert summarize(samples, 0) == GpuState(
        Spread(1910.0, 1901.0, 1919.0), Spread(2619.0, 2619.0, 2619.0), temperature_c=60.0, samples=21,
        power_w=110.0, other_processes=0,
    )


def test_dropped_samples_still_count_for_temperature_and_reasons() -> None:
    hot = GpuSample(900.0, 1500.0, 88.0, 700.0, ("software thermal slowdown", "hardware slowdown"))
    state = summarize([SAMPLE, hot, SAMPLE, replace(hot, throttled=CAP), SAMPLE], None)
    assert (state.samples, state.dropped, state.temperature_c) == (5, 2, 88.0)
    assert state.throttled == ("hardware slowdown", "software power cap", "software thermal slowdown")
    assert (state.sm_mhz, state.power_w) == (Spread(1980.0, 1980.0, 1980.0), 123.4)


def test_nothing_is_dropped_if_half_of_the_samples_were_throttled() -> None:
    state = summarize([*at(1980, 1980), *at(1500, 1500, throttled=CAP)], None)
    assert (state.dropped, state.throttled, state.sm_mhz.low) == (0, CAP, 1500.0)


def test_nothing_is_dropped_if_all_samples_were_throttled() -> None:
    state = summarize(at(1500, 1500, throttled=CAP), None)
    assert (state.samples, state.dropped, state.throttled, state.sm_mhz.median) == (2, 0, CAP, 1500.0)


def test_a_kind_of_inputs_that_is_always_throttled_keeps_its_calls() -> None:
    samples = [*at(1980, 1980, 1980, 1980, 1980), *at(900, throttled=CAP), *at(900, 900, throttled=CAP)]
    kinds = [*["as drawn"] * 6, *["negated"] * 2]
    assert dropped(samples, kinds) == [False] * 5 + [True] + [False] * 2
    assert summarize(samples, None, kinds).dropped == 1 and summarize(samples, None).dropped == 3
    assert dropped([None, *samples[1:]], kinds) == dropped(samples, kinds)


def test_no_kind_of_inputs_drops_its_calls_if_half_of_all_were_throttled() -> None:
    samples = [*at(1980, 1980), *at(900, throttled=CAP), *at(900, 900, throttled=CAP)]
    assert dropped(samples, ["as drawn"] * 3 + ["negated"] * 2) == [False] * 5


def test_the_power_is_the_median_of_the_known_powers() -> None:
    powers = [None, 100.0, 300.0, 110.0]
    assert summarize([replace(SAMPLE, power_w=power) for power in powers], None).power_w == 110.0
    assert summarize([replace(SAMPLE, power_w=None)], None).power_w is None


def test_a_summary_of_no_samples_raises() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarize([], 0)


@pytest.mark.parametrize(
    "facts", [{"dropped": 2}, {"dropped": -1}, {"samples": 0}, {"dropped": 1, "throttled": ()}]
)
def test_a_contradictory_state_raises(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        replace(summarize(at(1980, 1980), 0), **{"throttled": CAP, **facts})


@pytest.mark.parametrize("others", [0, None])
def test_an_undisturbed_state_has_no_flags(others: int | None) -> None:
    assert flags(summarize(at(1980, 1965, 1950, 1980, 1995), others)) == []


@pytest.mark.parametrize(
    ("others", "text"),
    [
        (1, "the GPU was busy: 1 other process ran on it"),
        (2, "the GPU was busy: 2 other processes ran on it"),
    ],
)
def test_other_processes_are_flagged(others: int, text: str) -> None:
    assert flags(summarize([SAMPLE], others)) == [text]


def test_falling_clocks_are_flagged_with_their_values() -> None:
    found = flags(summarize(at(*[1980.0] * 18, 1500, 1500), 0))
    assert found == ["unstable clocks: the SM clock fell to 1500 MHz, its median is 1980 MHz"]


def test_a_single_odd_reading_is_not_flagged() -> None:
    assert flags(summarize(at(*[1980.0] * 49, 345), 0)) == []


@pytest.mark.parametrize(("low", "flagged"), [(1900, False), (1899, True)])
def test_a_clock_is_unstable_below_its_share(low: float, flagged: bool) -> None:
    clock = Spread(2000.0, float(low), 2000.0)
    assert bool(flags(replace(summarize([SAMPLE], 0), sm_mhz=clock))) is flagged


def test_dropped_samples_are_flagged_with_their_reasons() -> None:
    samples = [*at(1980, 1980, 1980), *at(900, throttled=CAP), *at(900, throttled=("power brake",))]
    reasons = "power brake, software power cap"
    assert flags(summarize(samples, 0)) == [
        f"the GPU was throttled for part of the time ({reasons}): 2 of 5 samples were dropped"
    ]


def test_lasting_throttling_is_flagged() -> None:
    assert flags(summarize(at(900, 900, throttled=CAP), 0)) == [
        "the GPU was throttled during measured calls (software power cap)"
    ]


def test_flags_are_independent() -> None:
    assert len(flags(summarize([*at(1980, 1980, 1000), *at(900, throttled=CAP)], 3))) == 3


clocks = st.floats(1, 4000)
throttles = st.lists(st.sampled_from(list(SLOWDOWNS.values())), unique=True).map(tuple)
powers = st.none() | st.floats(0, 1500)
many = st.lists(st.builds(GpuSample, clocks, clocks, st.floats(0, 120), powers, throttles), min_size=1, max_size=40)


@given(many, st.none() | st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(samples: list[GpuSample], others: int | None, order: Any) -> None:
    shuffled = order.sample(samples, len(samples))
    assert summarize(shuffled, others) == summarize(samples, others)


@given(many)
def test_a_summary_is_within_its_samples(samples: list[GpuSample]) -> None:
    state = summarize(samples, None)
    kept = [sample for sample in samples if not sample.throttled] if drops(samples) else samples
    for spread, figures in (
        (state.sm_mhz, [sample.sm_mhz for sample in kept]), (state.memory_mhz, [sample.memory_mhz for sample in kept])
    ):
        assert min(figures) <= spread.low <= spread.median <= spread.high <= max(figures)
        assert spread.median == pytest.approx(statistics.median(figures))
    assert state.samples - state.dropped == len(kept)
    assert bool(state.throttled) == any(sample.throttled for sample in samples)


@given(many, many)
def test_dropped_samples_do_not_affect_the_clocks(samples: list[GpuSample], more: list[GpuSample]) -> None:
    calm = [replace(sample, throttled=()) for sample in samples]
    slow = [replace(sample, throttled=CAP) for sample in more]
    calm *= len(slow) // len(calm) + 1
    alone, beside = summarize(calm, None), summarize(calm + slow, None)
    assert (alone.sm_mhz, alone.memory_mhz, alone.power_w) == (beside.sm_mhz, beside.memory_mhz, beside.power_w)
    assert beside.dropped == len(slow)


@given(many, st.sampled_from([0.5, 2.0]))
def test_stability_does_not_depend_on_how_fast_the_clock_is(samples: list[GpuSample], factor: float) -> None:
    scaled = [replace(sample, sm_mhz=sample.sm_mhz * factor) for sample in samples]
    found, again = flags(summarize(samples, 0)), flags(summarize(scaled, 0))
    assert any("unstable" in flag for flag in found) == any("unstable" in flag for flag in again)
