"""Checks a solution whose calls all matched: whether its times are true, and whether its own kernels do the work."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from inlinebench.evaluation.attempt import Attempt, Tools
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.attribution import (
    LIBRARY,
    BuiltKernels,
    Origins,
    Profile,
    has_clock,
    read_profile,
)
from inlinebench.evaluation.integrity.batches import Batch
from inlinebench.evaluation.integrity.compulsory import compulsory_bytes
from inlinebench.evaluation.integrity.outside_clock import BatchTime, calls_in_batch, outside_ms
from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.requests import Requests
from inlinebench.evaluation.timings import Timings
from inlinebench.problem.workload import Costs, Workload
from inlinebench.records.result import Kernels, Verdict
from inlinebench.timing.lower_bounds import BatchCosts, least_transfer_ms
from inlinebench.timing.profile import Activity, Traced

BATCHES = 4
"""Batches that are tried before times count as implausible. The host is sometimes late, so one long batch proves
nothing."""
OUTSIDE_TOLERANCE = 0.10
"""The share by which the judge's clock may exceed the reported time of a solution that waits for the device."""
PROFILED_CALLS = 3
REPEATED_CALLS = 2
"""How many more calls are profiled if profiles are empty."""
PROFILE_TOLERANCE, PROFILE_SLACK_MS = 0.10, 0.005
"""How far the profiled time may exceed the reported time: the larger of a share and ms."""
WRITE_MARGIN = 0.9
"""The share of the time to write the outputs that a reported time must reach."""
NEGLIGIBLE = 0.01
"""Own kernels are negligible if they take less than this share of the GPU's time and replace less than this share of
the reference's kernels."""
REFERENCES_OWN = 0.5
"""The solution leaves the work to the reference's library kernels if these take at least this share of the time of all
library kernels that it ran."""
NONE_OF_ITS_OWN = ("no kernel of its own ran, only kernels of PyTorch and its libraries (--allow-library lets such a "
                   "solution pass)")
EMPTY = ("which kernels ran is unknown: the profiler recorded none of its calls, but does record the reference's; "
         "remove what uses CUPTI or a profiler from the solution (--allow-library lets such a solution pass)")


class IntegrityChecks:
    """The integrity checks of one candidate.

    Args:
        workload: the problem at its shape, with the shared buffers.
        tools: what the judge provides.
        attempt: gets the record of the kernels and notes.
        timings: the reported times.
        requests: the candidate's requests, for where its kernels come from and its number of launches.
        reference: is profiled if the solution's own kernels take little time.
        secret_random: chooses the bytes of the inputs that are tried to find out whether a call must read them.
        batch: makes a number of calls back to back, timed by the judge's clock. Returns the batch, and whether the
            blocking kernel lasted until it was released.
        trace: makes one traced call and returns the GPU's activities if it is traced for them.
        allow_library: whether the solution may pass without a kernel of its own.
    """

    def __init__(
        self, *, workload: Workload, tools: Tools, attempt: Attempt, timings: Timings, requests: Requests,
        reference: Reference, secret_random: random.Random, batch: Callable[[int], tuple[Batch, bool]],
        trace: Callable[[Traced], Sequence[Activity]], allow_library: bool,
    ) -> None:
        self._workload, self._tools, self._attempt = workload, tools, attempt
        self._timings, self._requests, self._reference = timings, requests, reference
        self._secret_random, self._batch, self._trace = secret_random, batch, trace
        self._allow_library = allow_library

    @property
    def _costs(self) -> Costs:
        assert self._workload.costs is not None  # measured for every workload on a GPU with timing
        return self._workload.costs

    def run(self) -> None:
        """Runs all checks that the device and the settings allow, the cheapest first. Raises Failed if one fails."""
        if self._workload.device.type == "cpu":
            self._check_launches()
            return
        reported = self._timings.solution_ms() if self._tools.settings.timing else None
        if reported is not None:
            self._check_writes(reported)
            self._check_reads(reported)
            self._check_outside_clock(reported)
        self._check_kernels(reported)

    @property
    def _must_own_kernels(self) -> bool:
        """Whether the solution needs a kernel of its own. An honest one launches none if there is nothing to compute.
        """
        return not self._allow_library and not self._workload.computes_nothing

    def _check_launches(self) -> None:
        if self._must_own_kernels and self._requests.launches() == 0:
            raise Failed(Verdict.REJECTED, NONE_OF_ITS_OWN)

    def _check_writes(self, reported: float) -> None:
        self._tools.progress("checking the time to write the outputs")
        least = self._costs.write_ms
        if reported < WRITE_MARGIN * least:
            raise Failed(Verdict.REJECTED, f"the reported time of {reported:.4g} ms is impossible: writing the outputs "
                         f"alone takes {least:.4g} ms on this device")

    def _check_reads(self, reported: float) -> None:
        """Raises Failed if the time is too short for reading the inputs. The oracle is asked only if it could be."""
        workload, peaks = self._workload, self._tools.peaks
        if peaks is None:
            return
        cached = torch.cuda.get_device_properties(workload.device).L2_cache_size
        written = workload.probed.written_bytes
        inputs = sum(spec.bytes for spec in workload.sets[0].inputs)
        if reported >= least_transfer_ms(inputs + written, cached, peaks):
            return
        self._tools.progress("finding out how much of its inputs a call must read")
        read = compulsory_bytes(workload, self._secret_random, self._tools.settings.tolerance)
        least = least_transfer_ms(read + written, cached, peaks)
        if reported < least:
            raise Failed(Verdict.REJECTED, f"the reported time of {reported:.4g} ms is impossible: a call must read "
                         f"{read / 1e6:.4g} MB of its inputs and write {written / 1e6:.4g} MB, which takes {least:.4g} "
                         "ms on this device")

    def _check_outside_clock(self, reported: float) -> None:
        """Raises Failed if the batches contradict the reported time, or replaces it if they do not explain it."""
        costs = self._workload.batch_costs
        assert costs is not None  # measured before the first solution of a workload was loaded
        if self._requests.synchronises:
            calls = calls_in_batch(reported, costs.most)
            batch, _ = self._time_batch(calls)
            least = outside_ms(calls, batch.took_ms, self._costs.surroundings)
            if least > reported * (1 + OUTSIDE_TOLERANCE):
                self._timings.outside_ms = least
            return
        # Many calls for precision; one call because nothing can be computed for several calls at once.
        for calls in sorted({calls_in_batch(reported, costs.most), 1}, reverse=True):
            found = self._least_time(calls, reported, costs)
            if found.contradicted:
                raise Failed(Verdict.REJECTED, self._timings.in_doubt(
                    f"its times don't add up: {found.calls} call{'s' * (found.calls > 1)} took {found.took_ms:.4g} ms "
                    f"by the judge's clock, so at least {found.least_ms:.4g} ms each, but {reported:.4g} ms were "
                    "reported"))
            if not found.explained:
                self._timings.outside_ms = max(found.least_ms, self._timings.outside_ms or 0.0)

    def _least_time(self, calls: int, reported: float, costs: BatchCosts) -> BatchTime:
        """Returns the shortest of several batches, or the first that the reported time explains. Raises Failed."""
        found: list[BatchTime] = []
        for _ in range(BATCHES):
            batch, blocked = self._time_batch(calls)
            while not blocked and calls > 1:
                calls = max(1, calls // 4)  # the device's queue may be too short for more calls
                found.clear()
                batch, blocked = self._time_batch(calls)
            if not blocked:
                continue
            found.append(BatchTime(calls, batch.took_ms, costs, reported))
            if found[-1].explained:
                break
        if not found:
            raise Failed(Verdict.REJECTED, self._timings.in_doubt(
                "its times don't add up: its timed calls could be queued in advance, but not the calls that the judge "
                "timed"))
        return min(found, key=lambda each: each.took_ms)

    def _time_batch(self, calls: int) -> tuple[Batch, bool]:
        self._tools.progress(f"timing a batch of {calls} calls with the judge's clock")
        return self._batch(calls)

    def _check_kernels(self, reported: float | None) -> None:
        self._tools.progress("profiling")
        calls = self._profiled_calls(1 if reported is None else PROFILED_CALLS)
        if not calls:
            self._check_empty_profile()
            return
        origins = self._origins({activity.name for activities in calls for activity in activities})
        profiles = [profile for each in calls if (profile := read_profile(each, origins.of)) is not None]
        best = min(profiles, key=lambda profile: profile.busy_ms)
        self._attempt.kernels = Kernels(best.own_share, best.top)
        for profile in profiles:
            self._check_order(profile)
        if reported is not None:
            self._check_profiled_time(best.busy_ms, reported)
        if self._must_own_kernels:
            self._check_ownership(best)

    def _profiled_calls(self, number: int) -> list[Sequence[Activity]]:
        """Returns the activities of that many calls, or of fewer if some profiles stay empty."""
        found: list[Sequence[Activity]] = []
        for _ in range(number + REPEATED_CALLS):
            activities = self._trace("activities")
            if has_clock(activities):
                found.append(activities)
            if len(found) == number:
                break
        return found

    def _check_empty_profile(self) -> None:
        """Raises Failed if the solution must be the cause, and does not use PyTorch's profiler itself.

        A process has one profiler. It records nothing anywhere if another tool uses the GPU's.
        """
        note = "which kernels ran is unknown: the profiler recorded none"
        if self._requests.provenance().profiles_itself:
            note += ", because the solution uses a profiler itself"
        elif self._must_own_kernels and has_clock(self._reference.profile(self._tools.tracer)):
            raise Failed(Verdict.REJECTED, EMPTY)
        self._attempt.notes.add(note)

    def _origins(self, names: Iterable[str]) -> Origins:
        """Returns what tells the origin of kernels of these names.

        Only if no library of the solution's has one of them, another call finds which libraries launch the kernels.
        """
        built = BuiltKernels(self._requests.libraries)
        if not any(name in built for name in names):
            self._trace("launches")
        return Origins(built, self._requests.provenance())

    def _check_order(self, profile: Profile) -> None:
        if profile.early:
            raise Failed(Verdict.REJECTED, f"a kernel ran before the clock started: {profile.early[:80]}")
        if profile.late:
            raise Failed(Verdict.REJECTED, f"a kernel ran after the clock stopped: {profile.late[:80]}")

    def _check_profiled_time(self, profiled_ms: float, reported_ms: float) -> None:
        if profiled_ms - reported_ms > max(PROFILE_TOLERANCE * reported_ms, PROFILE_SLACK_MS):
            raise Failed(Verdict.REJECTED, self._timings.in_doubt(
                f"its kernels take {profiled_ms:.4g} ms under the profiler, but it reported {reported_ms:.4g} ms"))

    def _check_ownership(self, profile: Profile) -> None:
        if profile.own_share == 0.0:
            raise Failed(Verdict.REJECTED, NONE_OF_ITS_OWN)
        if profile.own_share >= NEGLIGIBLE:
            return
        reference = read_profile(self._reference.profile(self._tools.tracer), lambda _: LIBRARY)
        if reference is not None and leaves_work_to_library(profile.library, reference.library):
            raise Failed(Verdict.REJECTED, f"only {profile.own_share:.2%} of its GPU time is in its own kernels; the "
                         "rest is in the reference's library kernels (--allow-library lets such a solution pass)")


def leaves_work_to_library(library: Mapping[str, float], reference: Mapping[str, float]) -> bool:
    """Whether a solution runs the reference's library kernels and replaces almost none of them.

    For solutions whose own kernels take almost no time. A fused epilogue can be that fast as well, but it replaces
    kernels of the reference.

    Args:
        library: the time in ms of each library kernel that the solution ran, by name.
        reference: the time in ms of each kernel that the reference ran, by name.
    """
    shared = sum(ms for name, ms in library.items() if name in reference)
    replaced = sum(ms for name, ms in reference.items() if name not in library)
    return shared >= REFERENCES_OWN * sum(library.values()) and replaced < NEGLIGIBLE * sum(reference.values())
