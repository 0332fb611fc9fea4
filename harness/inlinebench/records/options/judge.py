"""The options that the judge gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from inlinebench.records.options import kinds
from inlinebench.records.options.declaration import option
from inlinebench.records.options.kinds import COUNT, GIB, SECONDS, SWITCH

WARMUP_CALLS = 5
CALLS = 20
"""The least number of counted calls. So few already show a biased variance in a running statistic."""
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_CALLS = 3
"""The number of counted calls under a sanitizer."""
HOST_MEMORY_SHARE = 0.75
"""The default host memory of one candidate, as a share of the host memory that is free when the run starts."""


@dataclass(frozen=True)
class JudgeOptions:
    """The options that decide how a solution is judged."""

    scope: ClassVar[str] = "judge"
    check: bool = option(
        False, SWITCH, "correctness only: `inlinebench check`", "modes", decides=True)
    warmup: int = option(
        WARMUP_CALLS, kinds.WHOLE, "calls before the counted ones, which are checked but not timed", decides=True)
    seed: int | None = option(
        None, kinds.INTEGER, "the secret seed of an earlier run, to draw the same inputs", "inputs",
        decides=True)
    variants: bool = option(
        True, kinds.words({"on": True, "off": False}), "negated, scaled and sign-flipped inputs (default: on)",
        "inputs", decides=True)
    tolerance: float | None = option(
        None, kinds.TOLERANCE, "tolerance of floating-point outputs (default: by dtype)", "correctness", decides=True,
        flags="--tol")
    tf32: bool = option(
        False, SWITCH, "allow TF32 as PyTorch's defaults do", "correctness", decides=True)
    min_calls: int = option(
        CALLS, COUNT, f"the fewest counted calls, after {WARMUP_CALLS} warm-up calls (default: {CALLS}, or "
        f"{SANITIZED_CALLS} with --sanitize)", "correctness", decides=True)
    sanitize: str | None = option(
        None, kinds.one_of(SANITIZERS, "TOOL"), "run each solution under this tool of NVIDIA's compute-sanitizer "
        f"({', '.join(SANITIZERS)}), at the shape `small` if there is one, without times and outside the sandbox",
        "correctness", decides=True)
    max_calls: int = option(
        200, COUNT, "the most counted calls; sampling stops when the speedup is known well enough or its noise has "
        "settled", "times", decides=True)
    time_budget: float = option(
        5.0, SECONDS, "stop sampling after this many seconds, once the fewest calls are made", "times", decides=True)
    half_width: float = option(
        0.005, kinds.SHARE, "stop sampling at this relative half-width of the speedup's interval", "times",
        decides=True)
    baselines: tuple[str, ...] = option(
        (), kinds.BASELINE, "also compare with compile or compile-max (torch.compile of the reference, plain and "
        "max-autotune), or solution:NAME; repeatable (eager PyTorch and the solution 'library' are always included)",
        "times", decides=True, flags="--baseline")
    allow_library: bool = option(
        False, SWITCH, "let a solution pass without a kernel of its own", "integrity", decides=True)
    trust: bool = option(
        False, SWITCH, "leave out sandbox, outside clock and profile: for your own kernels", "integrity", decides=True)
    timeout: float = option(
        300.0, SECONDS, "seconds for one evaluation of a solution, or for the audit of a problem", "time limit",
        decides=True)
    problem_timeout: float = option(
        60.0, SECONDS, "seconds for each step of a problem's own code: to load the file, or for one call of get_inputs "
        "or of the reference", "time limit of problems", decides=True)
    max_memory: float | None = option(
        None, GIB, "skip problems that need more device memory (default: the free memory)", "memory", decides=True)
    host_memory: float | None = option(
        None, GIB, f"host memory for one candidate (default: {HOST_MEMORY_SHARE:.0%} of the free memory)", "memory",
        decides=True)
