"""Every setting of a run, and its default."""

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
"""Of problems and solutions: this checkout, or the current folder where the harness is installed without one."""
WARMUP_CALLS = 5
CALLS = 20
"""As few show a biased variance in a running statistic."""
MOST_CALLS = 200
TIME_BUDGET_S = 5.0
HALF_WIDTH = 0.005
"""Of a speedup's interval, as a share of it."""
PRECISIONS = ("fp32", "fp16", "bf16")
ALL_DEVICES = "all"
DEVICE = r"auto|cpu|cuda(:\d+)?"
"""What may be written for one device."""
STANDARD_INPUT = "-"
BASELINES = ("eager", "compile", "compile-max")
SOLUTION_BASELINE = "solution:"
PROFILES = Path("profiles")
RAY = "ray"
EXECUTORS = ("local", RAY)
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_CALLS = 3
HOST_MEMORY_SHARE = 0.75
"""Of the host memory that is free when a run starts: what one candidate may take."""
CACHE_LIMIT_GIB = 10.0

@dataclass(frozen=True)
class Options:
    """What a run is asked to do. Times are in seconds; `None` means "decided by the run"."""

    names: tuple[str, ...] = ()
    solution_file: Path | None = None
    response: Path | None = None
    all_blocks: bool = False
    answers: tuple[Solution, ...] = ()
    """What is in the response; not from the command line."""
    list_only: bool = False
    levels: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    check: bool = False
    shapes: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"
    devices: tuple[str, ...] = ()
    calls: int = CALLS
    most_calls: int = MOST_CALLS
    time_budget: float = TIME_BUDGET_S
    half_width: float = HALF_WIDTH
    precision: str | None = None
    baselines: tuple[str, ...] = ()
    profile: Path | None = None
    warmup: int = WARMUP_CALLS
    tolerance: float | None = None
    seed: int | None = None
    variants: bool = True
    tf32: bool = False
    allow_library: bool = False
    trust: bool = False
    sanitize: str | None = None
    require_sandbox: bool = False
    host_memory: float | None = None
    max_memory: float | None = None
    """In GiB, as `host_memory`."""
    timeout: float = 300.0
    build_timeout: float = 600.0
    jobs: int | None = None
    full_headers: bool = False
    architectures: tuple[str, ...] = ()
    """As nvcc writes compute capabilities: `90`, `90a`. None: those of the device."""
    build_only: bool = False
    executor: str = "local"
    ray_address: str | None = None
    """Of a Ray cluster; None starts one on this machine."""
    cache: Path = field(default_factory=lambda: default_cache(os.environ))
    cache_limit: float = field(default_factory=lambda: default_cache_limit(os.environ))
    """In GiB."""
    problems: Path = HOME / "problems"
    solutions: Path = HOME / "solutions"
    out: Path | None = None
    resume: bool = False
    shard: tuple[int, int] | None = None
    """Which part of how many, the first being 1."""
    junit: Path | None = None
    strict: bool = False
    feedback: bool = False
    verbose: bool = False
    quiet: bool = False


def default_cache(environment: Mapping[str, str]) -> Path:
    """Where built libraries are kept unless a run says otherwise."""
    return Path(environment.get("INLINEBENCH_CACHE") or "~/.cache/inlinebench").expanduser()


def default_cache_limit(environment: Mapping[str, str]) -> float:
    """How many GiB built libraries may take unless a run says otherwise. Raises UsageError if that is no size."""
    try:
        return gib(environment.get("INLINEBENCH_CACHE_LIMIT") or str(CACHE_LIMIT_GIB))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"INLINEBENCH_CACHE_LIMIT: {error}") from error


def gib(text: str) -> float:
    """A size in GiB from a command line; `inf` is no limit."""
    number = number_of(text)
    if not 0 <= number <= float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no size in GiB: 0 or more")
    return number


def number_of(text: str) -> float:
    """The number that a text is; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
