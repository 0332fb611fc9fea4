"""Integrity checks of a solution whose calls all matched: whether it did its own work, in the times it reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inlinebench.evaluation.attempt import Attempt, Tools
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.attribution import LIBRARY, Origins, Profile, read_profile
from inlinebench.evaluation.integrity.batches import Batch
from inlinebench.evaluation.integrity.outside_clock import calls_in_batch, most_plausible_ms, outside_ms
from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.requests import Requests
from inlinebench.evaluation.timings import Timings
from inlinebench.messages import Evaluate
from inlinebench.problem.workload import Costs, Workload
from inlinebench.records.result import Kernels, Verdict
from inlinebench.timing.profile import Activity

BATCHES = 4
"""Tried before times are called implausible: the host is sometimes late, and then the judge sees the work end late."""
PROFILED_CALLS = 3
PROFILE_TOLERANCE, PROFILE_SLACK_MS = 0.10, 0.005
"""How far what ran may exceed the reported time: the larger of the two."""
WRITE_MARGIN = 0.9
FIG_LEAF = 0.01
REFERENCES_OWN = 0.5
"""Own kernels with less than the first share of the GPU's time are none, if they replace less than that of the
reference, and if the reference's own kernels make up the second share of what library kernels ran."""
NONE_OF_ITS_OWN = ("no kernel of its own ran: only PyTorch's and its libraries' did (--allow-library lets such a "
                   "solution pass)")


class IntegrityChecks:
    """The integrity checks of one candidate.

    `batch` makes that many calls back to back, timed by the judge's clock; it also returns whether the blocking kernel
    lasted until it was released. `profile` makes one call under the profiler.
    """

    def __init__(
        self, *, workload: Workload, job: Evaluate, tools: Tools, attempt: Attempt, timings: Timings,
        requests: Requests, reference: Reference, batch: Callable[[int], tuple[Batch, bool]],
        profile: Callable[[], Sequence[Activity]],
    ) -> None:
        self._workload, self._job, self._tools, self._attempt = workload, job, tools, attempt
        self._timings, self._requests, self._reference = timings, requests, reference
        self._batch, self._profile = batch, profile

    @property
    def _costs(self) -> Costs:
        assert self._workload.costs is not None  # every workload on a GPU has them where times are taken
        return self._workload.costs

    def run(self) -> None:
        """Makes all checks, cheapest first. Raises Failed at the first that fails."""
        if self._workload.device.type == "cpu":
            self._check_launches()
            return
        reported = self._timings.solution_ms() if self._tools.settings.timing else None
        if reported is not None:
            self._check_writes(reported)
            self._check_outside_clock(reported)
        self._check_kernels(reported)

    def _check_launches(self) -> None:
        if not self._tools.settings.allow_library and self._requests.launches() == 0:
            raise Failed(Verdict.REJECTED, NONE_OF_ITS_OWN)

    def _check_writes(self, reported: float) -> None:
        self._tools.progress("timing its outputs alone")
        least = self._costs.write_ms
        if reported < WRITE_MARGIN * least:
            raise Failed(Verdict.REJECTED, f"{reported:.4g} ms are impossible: writing its outputs alone takes "
                         f"{least:.4g} ms on this device")

    def _check_outside_clock(self, reported: float) -> None:
        beside = self._costs.beside
        calls = calls_in_batch(reported, len(self._workload.sets))
        took, plausible = 0.0, 0.0
        for _ in range(BATCHES):
            self._tools.progress(f"clocking a batch of {calls} from outside")
            batch, blocked = self._batch(calls)
            while not blocked and calls > 1:
                calls = max(1, calls // 4)  # what fits into the device's queue is all that can be held
                batch, blocked = self._batch(calls)
            if not blocked:
                continue
            if self._requests.synchronises:
                self._timings.outside_ms = outside_ms(calls, batch.time.least_ms, beside)
                return
            took = batch.time.least_ms
            plausible = most_plausible_ms(calls, reported, beside)
            if took <= plausible:
                return
        raise Failed(Verdict.REJECTED, self._timings.in_doubt(
            f"its times don't add up: {calls} calls took {took:.4g} ms by the judge's clock; at the {reported:.4g} ms "
            f"that were reported, {plausible:.4g} ms is the most" if took else
            "its times don't add up: its calls could be queued in advance, but none when the judge took the time"
        ))

    def _check_kernels(self, reported: float | None) -> None:
        self._tools.progress("profiling")
        solution = self._job.solution
        text = "" if solution is None else solution.read_text(encoding="utf-8", errors="replace")
        origins = Origins(self._requests.libraries, text)
        number = 1 if reported is None else PROFILED_CALLS
        found = [read_profile(self._profile(), origins.of) for _ in range(number)]
        profiles = [profile for profile in found if profile is not None]
        if not profiles:
            self._attempt.notes.add("which kernels ran is unknown: the profiler shows none here")
            return
        best = min(profiles, key=lambda profile: profile.busy_ms)
        self._attempt.kernels = Kernels(best.own_share, best.top)
        for profile in profiles:
            self._check_order(profile)
        if reported is not None:
            self._check_profiled_time(best.busy_ms, reported)
        if not self._tools.settings.allow_library:
            self._check_ownership(best)

    def _check_order(self, profile: Profile) -> None:
        if profile.early:
            raise Failed(Verdict.REJECTED, f"a kernel ran before the clock started: {profile.early[:80]}")
        if profile.late:
            raise Failed(Verdict.REJECTED, f"a kernel ran after the clock stopped: {profile.late[:80]}")

    def _check_profiled_time(self, profiled_ms: float, reported_ms: float) -> None:
        if profiled_ms - reported_ms > max(PROFILE_TOLERANCE * reported_ms, PROFILE_SLACK_MS):
            raise Failed(Verdict.REJECTED, self._timings.in_doubt(
                f"its kernels take {profiled_ms:.4g} ms under the profiler; {reported_ms:.4g} ms were reported"))

    def _check_ownership(self, profile: Profile) -> None:
        if profile.own_share == 0.0:
            raise Failed(Verdict.REJECTED, NONE_OF_ITS_OWN)
        if profile.own_share >= FIG_LEAF:
            return
        reference = read_profile(self._reference.profile(self._tools.tracer), lambda _: LIBRARY)
        if reference is not None and is_fig_leaf(profile.library, reference.library):
            raise Failed(Verdict.REJECTED, f"{profile.own_share:.2%} of its GPU time is its own kernels'; the rest is "
                         "the reference's library calls (--allow-library lets such a solution pass)")


def is_fig_leaf(library: Mapping[str, float], reference: Mapping[str, float]) -> bool:
    """Whether own kernels with next to no time of their own also replace next to nothing.

    Given are the times in ms of the library kernels that ran, and of the reference's kernels, by name. A fused epilogue
    may well be that fast; it shows in the kernels of the reference that are gone.
    """
    shared = sum(ms for name, ms in library.items() if name in reference)
    replaced = sum(ms for name, ms in reference.items() if name not in library)
    return shared >= REFERENCES_OWN * sum(library.values()) and replaced < FIG_LEAF * sum(reference.values())
