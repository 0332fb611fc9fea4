"""Checks of a solution whose calls all matched whether its own kernels do the work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

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
from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.requests import Requests
from inlinebench.problem.workload import Workload
from inlinebench.records.result import Kernels, Verdict
from inlinebench.timing.profile import Activity, Traced

REPEATED_CALLS = 2
"""How many more calls are profiled if profiles are empty."""
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
        requests: the candidate's requests, for where its kernels come from and its number of launches.
        reference: is profiled if the solution's own kernels take little time.
        trace: makes one traced call and returns the GPU's activities if it is traced for them.
        allow_library: whether the solution may pass without a kernel of its own.
    """

    def __init__(
        self, *, workload: Workload, tools: Tools, attempt: Attempt, requests: Requests,
        reference: Reference, trace: Callable[[Traced], Sequence[Activity]], allow_library: bool,
    ) -> None:
        self._workload, self._tools, self._attempt = workload, tools, attempt
        self._requests, self._reference = requests, reference
        self._trace = trace
        self._allow_library = allow_library

    def run(self) -> None:
        """Runs the checks that the device allows. Raises Failed if one fails."""
        if self._workload.device.type == "cpu":
            self._check_launches()
        else:
            self._check_kernels()

    @property
    def _must_own_kernels(self) -> bool:
        """Whether the solution needs a kernel of its own. An honest one launches none if there is nothing to compute.
        """
        return not self._allow_library and not self._workload.computes_nothing

    def _check_launches(self) -> None:
        if self._must_own_kernels and self._requests.launches() == 0:
            raise Failed(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN)

    def _check_kernels(self) -> None:
        self._tools.progress("profiling")
        activities = self._profiled_call()
        profile = read_profile(activities, self._origins({activity.name for activity in activities}).of)
        if profile is None:
            self._check_empty_profile()
            return
        self._attempt.kernels = Kernels(profile.own_share, profile.top)
        if self._must_own_kernels:
            self._check_ownership(profile)

    def _profiled_call(self) -> Sequence[Activity]:
        """Returns the activities of a call, or nothing if its profile stays empty."""
        for _ in range(1 + REPEATED_CALLS):
            activities = self._trace("activities")
            if has_clock(activities):
                return activities
        return ()

    def _check_empty_profile(self) -> None:
        """Raises Failed if the solution must be the cause, and does not use PyTorch's profiler itself.

        A process has one profiler. It records nothing anywhere if another tool uses the GPU's.
        """
        note = "which kernels ran is unknown: the profiler recorded none"
        if self._requests.provenance().profiles_itself:
            note += ", because the solution uses a profiler itself"
        elif self._must_own_kernels and has_clock(self._reference.profile(self._tools.tracer)):
            raise Failed(Verdict.NO_OWN_KERNEL, EMPTY)
        self._attempt.notes.add(note)

    def _origins(self, names: Collection[str]) -> Origins:
        """Returns what tells the origin of kernels of these names.

        Only if no library of the solution's has one of them, another call finds which libraries launch the kernels.
        """
        built = BuiltKernels(self._requests.libraries)
        if names and not any(name in built for name in names):
            self._trace("launches")
        return Origins(built, self._requests.provenance())

    def _check_ownership(self, profile: Profile) -> None:
        if profile.own_share == 0.0:
            raise Failed(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN)
        if profile.own_share >= NEGLIGIBLE:
            return
        reference = read_profile(self._reference.profile(self._tools.tracer), lambda _: LIBRARY)
        if reference is not None and leaves_work_to_library(profile.library, reference.library):
            raise Failed(Verdict.NO_OWN_KERNEL, f"only {profile.own_share:.2%} of its GPU time is in its own kernels; "
                         "the rest is in the reference's library kernels (--allow-library lets such a solution pass)")


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
