"""The settings of a run, with their defaults."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inlinebench.records.catalog import Solution
from inlinebench.records.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent.parent.parent
HOME = ROOT if (ROOT / "problems").is_dir() else Path()
"""The parent of `problems/` and `solutions/`: this checkout, or the current folder for an installed package."""
WARMUP_CALLS = 5
CALLS = 20
"""The least number of counted calls. So few already show a biased variance in a running statistic."""
MOST_CALLS = 200
TIME_BUDGET_S = 5.0
HALF_WIDTH = 0.005
"""The half-width of a speedup's interval that is precise enough, as a share of the speedup."""
PRECISIONS = ("fp32", "fp16", "bf16")
ALL_DEVICES = "all"
DEVICE = r"auto|cpu|cuda(:\d+)?"
"""The regular expression of a value of `--device`."""
STANDARD_INPUT = "-"
BASELINES = ("eager", "compile", "compile-max")
SOLUTION_BASELINE = "solution:"
PROFILES = Path("profiles")
RAY = "ray"
EXECUTORS = ("local", RAY)
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_CALLS = 3
"""The number of counted calls under a sanitizer."""
HOST_MEMORY_SHARE = 0.75
"""The default host memory of one candidate, as a share of the host memory that is free when the run starts."""
CACHE_LIMIT_GIB = 10.0


@dataclass(frozen=True)
class Options:
    """The settings of a run. Each field corresponds to a command-line option, unless it says otherwise."""

    names: tuple[str, ...] = ()
    """The problems and solutions to evaluate: problems, `problem/solution`, globs of either, paths of problem files,
    numbers or ranges of numbers. Empty means everything."""
    solution_files: tuple[Path, ...] = ()
    """Solution files to evaluate against the one problem in `names`. Several are compared with the first one."""
    response: Path | None = None
    """A file with a model's response (`-` for standard input), whose code block is evaluated like `solution_files`."""
    all_blocks: bool = False
    """Whether every code block of the response that defines `ModelNew` is evaluated, not only the last."""
    responses: tuple[Solution, ...] = ()
    """The solutions found in the response. Not a command-line option."""
    list_only: bool = False
    """Whether to list problems, shapes and solutions instead of evaluating."""
    levels: tuple[int, ...] = ()
    """Evaluate only problems of these levels. Empty means all levels."""
    tags: tuple[str, ...] = ()
    """Evaluate only problems with at least one of these tags. Empty means all problems."""
    check: bool = False
    """Whether to check correctness only, without times."""
    shapes: tuple[str, ...] = ()
    """The shapes to evaluate. Empty means `full` on a GPU, every shape with `check`, the declared shapes on the CPU, or
    a derived one if there are none."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Constants of the problem files to replace, by name. Each applies to the problems that have it."""
    device: str = "auto"
    """The device: `auto`, `cpu`, `cuda` or `cuda:N`."""
    devices: tuple[str, ...] = ()
    """Several devices that share the work: `("all",)`, GPU numbers, or `("cpu", "cpu")`. Empty means `device`."""
    calls: int = CALLS
    """The least number of counted calls, after the warm-up."""
    most_calls: int = MOST_CALLS
    """The greatest number of counted calls."""
    time_budget: float = TIME_BUDGET_S
    """Seconds after which no counted calls beyond `calls` are made."""
    half_width: float = HALF_WIDTH
    """The half-width of the speedup's interval at which calls stop, as a share of the speedup."""
    precision: str | None = None
    """The dtype that floating-point inputs and weights are cast to: `fp32`, `fp16` or `bf16`. None casts nothing."""
    baselines: tuple[str, ...] = ()
    """Baselines beside eager PyTorch: `compile`, `compile-max` or `solution:NAME`."""
    profile: Path | None = None
    """The folder for reports of Nsight Compute. None writes none."""
    warmup: int = WARMUP_CALLS
    """The number of warm-up calls. Not a command-line option."""
    tolerance: float | None = None
    """The tolerance of floating-point outputs, relative to their scale. None chooses it by dtype."""
    seed: int | None = None
    """The seed of the run. None draws a secret one."""
    variants: bool = True
    """Whether some calls get negated, scaled or sign-flipped inputs."""
    tf32: bool = False
    """Whether TF32 keeps PyTorch's defaults. Otherwise it is off."""
    allow_library: bool = False
    """Whether a solution without a kernel of its own may pass."""
    trust: bool = False
    """Whether to leave out the sandbox and the integrity checks."""
    sanitize: str | None = None
    """The tool of NVIDIA's compute-sanitizer to run solutions under: `memcheck`, `racecheck`, `initcheck` or
    `synccheck`."""
    require_sandbox: bool = False
    """Whether to refuse a machine that lacks protections of the sandbox."""
    host_memory: float | None = None
    """The host memory of one candidate, in GiB. None means `HOST_MEMORY_SHARE` of the free host memory."""
    max_memory: float | None = None
    """The device memory that a problem may need, in GiB. None means all that is free."""
    timeout: float = 300.0
    """The time limit of one evaluation, in seconds."""
    problem_timeout: float = 60.0
    """The time limit of each step of a problem's own code, such as one call of `get_inputs`, in seconds."""
    build_timeout: float = 600.0
    """The time limit of one build, in seconds."""
    jobs: int | None = None
    """The number of parallel builds. None decides by cores and memory."""
    full_headers: bool = False
    """Whether builds always use PyTorch's full headers. Otherwise they use slim ones where these suffice."""
    architectures: tuple[str, ...] = ()
    """The compute capabilities to build for, as nvcc writes them: `90`, `90a`. Empty means those of the devices."""
    build_only: bool = False
    """Whether to build solutions without evaluating them."""
    executor: str = "local"
    """Where judges run: `local` or `ray`."""
    ray_address: str | None = None
    """The address of a Ray cluster. None starts Ray on this machine."""
    cache: Path = field(default_factory=lambda: at_home(default_cache(os.environ)))
    """The folder of built libraries."""
    cache_limit: float = field(default_factory=lambda: default_cache_limit(os.environ))
    """The size that built libraries may take, in GiB."""
    problems: Path = HOME / "problems"
    """The folder of problem files."""
    solutions: Path = HOME / "solutions"
    """The folder of solution files."""
    out: Path | None = None
    """The file that results are appended to as JSON Lines."""
    resume: bool = False
    """Whether to skip evaluations whose results are in `out` already."""
    shard: tuple[int, int] | None = None
    """The part of the work to do, counted from 1, and the number of parts."""
    fail_fast: bool = False
    """Whether to stop after the first evaluation that did not pass."""
    last_failed: bool = False
    """Whether to evaluate only what did not pass when it was last evaluated."""
    junit: Path | None = None
    """The file that results are written to as JUnit XML."""
    strict: bool = False
    """Whether a skipped evaluation, and a failure at a derived shape, count as not passed in the exit status."""
    feedback: bool = False
    """Whether to print feedback on each solution instead of the table."""
    verbose: bool = False
    """Whether to print the output of compilers and solutions on stderr."""
    quiet: bool = False
    """Whether to hide the progress line."""


def default_cache(environment: Mapping[str, str]) -> Path:
    """Returns the default of `Options.cache`, before `at_home`: INLINEBENCH_CACHE, or `~/.cache/inlinebench`."""
    return Path(environment.get("INLINEBENCH_CACHE") or "~/.cache/inlinebench")


def at_home(folder: Path) -> Path:
    """Returns a folder with the home folder in the place of `~`. Raises UsageError if that is not known."""
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{folder}: the home folder is not known; name the cache's folder with --cache or "
                         "INLINEBENCH_CACHE") from error


def default_cache_limit(environment: Mapping[str, str]) -> float:
    """Returns the default of `Options.cache_limit`: INLINEBENCH_CACHE_LIMIT, or 10 GiB.

    Raises UsageError if the variable is not a size in GiB.
    """
    try:
        return gib(environment.get("INLINEBENCH_CACHE_LIMIT") or str(CACHE_LIMIT_GIB))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"INLINEBENCH_CACHE_LIMIT: {error}") from error


def gib(text: str) -> float:
    """Parses a size in GiB; `inf` means no limit. Raises ArgumentTypeError for text that is not such a size."""
    number = number_of(text)
    if not 0 <= number <= float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no size in GiB: 0 or more")
    return number


def number_of(text: str) -> float:
    """Returns the number in a text, or NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
