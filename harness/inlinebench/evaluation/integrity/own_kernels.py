"""Checks whether a solution's own kernels do the work. `CHECKS` has all integrity checks after the last call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from inlinebench.devices.registry import of
from inlinebench.evaluation.integrity.attribution import (
    LIBRARY,
    BuiltKernels,
    Origins,
    Profile,
    has_clock,
    read_profile,
)
from inlinebench.evaluation.integrity.context import Context, Finding
from inlinebench.results.result import Kernels, Verdict
from inlinebench.timing.trace import Activity

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
UNKNOWN = "which kernels ran is unknown: the profiler recorded none"


def launches(context: Context) -> Finding:
    """Whether a kernel of the solution's has run by emulation, whose runtime counts them."""
    emulated = of(context.workload.device).kind.emulates_cuda
    if emulated and _must_own(context) and context.requests.launches() == 0:
        return Finding(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN)
    return Finding()


def kernels(context: Context) -> Finding:
    """Which kernels ran on a GPU, and whether the solution's own ones do the work."""
    if of(context.workload.device).kind.emulates_cuda:
        return Finding()
    context.progress("profiling")
    activities = _profiled_call(context)
    profile = read_profile(activities, _origins(context, {activity.name for activity in activities}).of)
    if profile is None:
        return _empty_profile(context)
    verdict, reason = _ownership(context, profile) if _must_own(context) else (None, "")
    without = [each.name for each in profile.passes if each.ms and not each.own_share]
    ran = Kernels(profile.own_share, profile.top, profile.passes, profile.activities, profile.idle_ms)
    note = f"no kernel of its own ran in the {without[0]}" if without and not context.allow_library else ""
    return Finding(verdict, reason, note, ran)


CHECKS: tuple[Callable[[Context], Finding], ...] = (launches, kernels)
"""The integrity checks after the last call, in order."""


def _must_own(context: Context) -> bool:
    """Whether the solution needs a kernel of its own. An honest one launches none if there is nothing to compute."""
    return not context.allow_library and not context.workload.computes_nothing


def _profiled_call(context: Context) -> Sequence[Activity]:
    """Returns the activities of a call, or nothing if its profile stays empty."""
    for _ in range(1 + REPEATED_CALLS):
        activities = context.trace("activities")
        if has_clock(activities):
            return activities
    return ()


def _empty_profile(context: Context) -> Finding:
    """Finds out whether the solution must be the cause, unless it uses PyTorch's profiler itself.

    A process has one profiler. It records nothing anywhere if another tool uses the GPU's.
    """
    if context.requests.provenance().profiles_itself:
        return Finding(note=f"{UNKNOWN}, because the solution uses a profiler itself")
    if _must_own(context) and has_clock(context.reference.profile(context.tracer)):
        return Finding(Verdict.NO_OWN_KERNEL, EMPTY)
    return Finding(note=UNKNOWN)


def _origins(context: Context, names: Collection[str]) -> Origins:
    """Returns what tells the origin of kernels of these names.

    Only if no library of the solution's has one of them, another call finds which libraries launch the kernels.
    """
    built = BuiltKernels(context.requests.libraries)
    if names and not any(name in built for name in names):
        context.trace("launches")
    return Origins(built, context.requests.provenance())


def _ownership(context: Context, profile: Profile) -> tuple[Verdict | None, str]:
    """Returns the verdict on a solution by the share of its own kernels, and the reason. None if they do the work."""
    if profile.own_share == 0.0:
        return Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN
    if profile.own_share >= NEGLIGIBLE:
        return None, ""
    reference = read_profile(context.reference.profile(context.tracer), lambda _: LIBRARY)
    if reference is None or not leaves_work_to_library(profile.library, reference.library):
        return None, ""
    return Verdict.NO_OWN_KERNEL, (
        f"only {profile.own_share:.2%} of its GPU time is in its own kernels; the rest is in the reference's library "
        "kernels (--allow-library lets such a solution pass)")


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
