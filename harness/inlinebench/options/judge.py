"""The options that the judge gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from inlinebench.options import kinds
from inlinebench.options.declaration import option
from inlinebench.options.kinds import COUNT, GIB, SECONDS, SWITCH

WARMUP_CALLS = 5
CALLS = 20
"""The default minimum number of measured calls. This is enough to show a biased variance in a running statistic."""
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_CALLS = 3
"""The number of measured calls under a sanitizer."""
FUZZED_WARMUP, FUZZED_CALLS = 1, 2
"""The numbers of warm-up calls and of further calls at each size of `--fuzz`."""
HOST_MEMORY_SHARE = 0.75
"""The default host memory of one candidate, as a share of the host memory that is free when the run starts."""


@dataclass(frozen=True)
class JudgeOptions:
    """The options that decide how a solution is judged."""

    scope: ClassVar[str] = "judge"
    check: bool = option(
        False, SWITCH, "check correctness only: `inlinebench check`", "modes", decides=True)
    warmup: int = option(
        WARMUP_CALLS, kinds.WHOLE, "number of warm-up calls, which are checked but not measured", decides=True)
    seed: int | None = option(
        None, kinds.INTEGER, "secret seed of an earlier run, to draw the same inputs again", "inputs",
        decides=True)
    variants: bool = option(
        True, kinds.words({"on": True, "off": False}), "also evaluate on inputs with other signs and "
        "scales (default: on)", "inputs", decides=True)
    tolerance: float | None = option(
        None, kinds.TOLERANCE, "tolerance for floating-point outputs (default: by dtype)", "correctness", decides=True,
        flags="--tol")
    determinism: bool = option(
        False, SWITCH, "also make calls on the same inputs in two further processes, and report whether all bits are "
        "equal, and whether a row's bits depend on its place in the batch", "correctness", decides=True)
    tf32: bool = option(
        False, SWITCH, "allow TF32 where PyTorch's defaults allow it", "correctness", decides=True)
    min_calls: int = option(
        CALLS, COUNT, f"minimum number of measured calls, after {WARMUP_CALLS} warm-up calls (default: {CALLS}, or "
        f"{SANITIZED_CALLS} with --sanitize, {FUZZED_CALLS} with --fuzz)", "correctness", decides=True)
    sanitize: str | None = option(
        None, kinds.one_of(SANITIZERS, "TOOL"), "run each solution under this tool of NVIDIA's compute-sanitizer "
        f"({', '.join(SANITIZERS)}), at the shape `small` if it is declared, without timing and outside the sandbox",
        "correctness", decides=True)
    max_calls: int = option(
        200, COUNT, "maximum number of measured calls; sampling stops earlier when the speedup is known precisely "
        "enough or its noise has settled", "times", decides=True)
    time_budget: float = option(
        5.0, SECONDS, "stop sampling after this many seconds, once --min-calls is reached", "times", decides=True)
    half_width: float = option(
        0.005, kinds.SHARE, "stop sampling at this relative half-width of the speedup's confidence interval", "times",
        decides=True)
    at_least: float | None = option(
        None, kinds.RATIO, "stop sampling as soon as it is known whether the speedup is above or below X", "times",
        decides=True)
    baselines: tuple[str, ...] = option(
        (), kinds.BASELINE, "also compare with compile or compile-max (torch.compile of the reference, without or with "
        "max-autotune), or solution:NAME; repeatable (eager PyTorch and the solution 'library' are always included)",
        "times", decides=True, flags="--baseline")
    allow_library: bool = option(
        False, SWITCH, "let a solution pass without a kernel of its own", "integrity", decides=True)
    trust: bool = option(
        False, SWITCH, "skip the sandbox and the integrity checks, for your own kernels", "integrity", decides=True)
    timeout: float = option(
        300.0, SECONDS, "time limit for evaluating one solution or auditing one problem, in seconds", "time limit",
        decides=True)
    problem_timeout: float = option(
        60.0, SECONDS, "time limit for each step of a problem's own code, such as loading the file or one call of "
        "get_inputs or the reference, in seconds", "time limit of problems", decides=True)
    max_memory: float | None = option(
        None, GIB, "skip problems that need more device memory, in GiB (default: the free memory)", "memory",
        decides=True)
    host_memory: float | None = option(
        None, GIB, f"host memory limit for one candidate, in GiB (default: {HOST_MEMORY_SHARE:.0%} of the free memory)",
        "memory", decides=True)
