"""Every setting of a run, its default, and the command line that sets it."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__
from harness.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent
WARMUP_CALLS = 5
CALLS = 20
"""As few show a biased variance in a running statistic."""
MOST_CALLS = 200
TIME_BUDGET_S = 5.0
HALF_WIDTH = 0.005
"""Of a speedup's interval, as a share of it."""
PRECISIONS = ("fp32", "fp16", "bf16")
ALL_DEVICES = "all"
BASELINES = ("eager", "compile", "compile-max")
SOLUTION_BASELINE = "solution:"
PROFILES = Path("profiles")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_CALLS = 3
HOST_MEMORY_SHARE = 0.75
"""Of the host memory that is free when a run starts: what one candidate may take."""
CACHE_LIMIT_GIB = 10.0

EXAMPLES = """\
examples:
  python run_eval.py                           every problem with every solution, as a table
  python run_eval.py matmul_diag/naive         one solution, again and again while working on it
  python run_eval.py --check --junit out.xml   a gate in CI: correctness only, every shape, exit status
"""


@dataclass(frozen=True)
class Options:
    """What a run is asked to do. Times are in seconds; `None` means "decided by the run"."""

    names: tuple[str, ...] = ()
    solution_file: Path | None = None
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
    cache: Path = field(default_factory=lambda: default_cache(os.environ))
    cache_limit: float = field(default_factory=lambda: default_cache_limit(os.environ))
    """In GiB."""
    problems: Path = ROOT / "problems"
    solutions: Path = ROOT / "solutions"
    out: Path | None = None
    resume: bool = False
    shard: tuple[int, int] | None = None
    """Which part of how many, the first being 1."""
    junit: Path | None = None
    strict: bool = False
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


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """The options that a command line asks for.

    Raises UsageError for what can't be meant; leaves through SystemExit for `--help`, `--version` and unknown flags.
    """
    given = _parser(environment).parse_args(arguments)
    if given.profile and given.device == "cpu":
        raise UsageError("--profile needs a GPU: it tells what runs there")
    given.profile = PROFILES if given.profile else None
    if given.sanitize is not None and given.device == "cpu":
        raise UsageError("--sanitize needs a GPU: compute-sanitizer looks into kernels that run there")
    if given.calls is None:
        given.calls = SANITIZED_CALLS if given.sanitize else CALLS
    given.most_calls = max(given.most_calls, given.calls)
    given.baselines = tuple(dict.fromkeys(name for name in given.baselines if name != BASELINES[0]))
    given.constants = dict(_constant(text) for text in given.constants)
    given.names, given.shapes = tuple(given.names), tuple(given.shapes)
    given.levels, given.tags = tuple(given.levels), tuple(given.tags)
    given.cache = given.cache.expanduser()
    given.solutions = given.solutions or given.problems.parent / "solutions"
    if given.cache_limit is None:
        given.cache_limit = default_cache_limit(environment)
    given.architectures = tuple(dict.fromkeys(given.architectures))
    given.devices = tuple(given.devices)
    if given.devices and given.device != Options.device:
        raise UsageError("--device and --devices exclude each other")
    if given.constants and given.shapes:
        raise UsageError("--set and --shape exclude each other: --set changes the constants of the file as written")
    if given.resume and given.out is None:
        raise UsageError("--resume needs --out FILE: it leaves out what that file has already")
    if given.shard and any(name.startswith(SOLUTION_BASELINE) for name in given.baselines):
        raise UsageError(f"--shard and --baseline {SOLUTION_BASELINE}NAME exclude each other: the two solutions of a "
                         "comparison may be in different parts")
    if given.solution_file is not None and len(given.names) != 1:
        raise UsageError("--solution FILE needs exactly one problem name to be evaluated against")
    _check_builds(given)
    return Options(**vars(given))


def _check_builds(given: argparse.Namespace) -> None:
    if given.architectures and (given.device == "cpu" or "cpu" in given.devices):
        raise UsageError("--arch names GPUs to build for: leave it out, or the CPU")
    if not given.build_only:
        return
    for flag, value in (("--devices", given.devices), ("--sanitize", given.sanitize), ("--profile", given.profile),
                        ("--out", given.out), ("--junit", given.junit), ("--shard", given.shard)):
        if value:
            raise UsageError(f"--build-only evaluates nothing, so there is nothing for {flag} to do")


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    default = Options(cache_limit=CACHE_LIMIT_GIB)  # the environment's is looked at when it is needed
    parser = argparse.ArgumentParser(
        prog="run_eval.py",
        description="Decides whether CUDA kernels compute what their PyTorch references compute, and how much faster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="problem, problem/solution, a glob of either, a problem file, or the "
        "number or range of numbers of such as 12_Matmul; PROBLEM/@reference submits the reference itself (default: "
        "everything)")
    _add_selection(parser, default)
    _add_measurement(parser, default)
    _add_trust(parser)
    add("--cache", type=Path, default=default_cache(environment), metavar="DIR", help="where built libraries are kept "
        "(or INLINEBENCH_CACHE)")
    add("--cache-limit", type=gib, metavar="GIB", help="how much is kept: what was used least recently goes first "
        f"(or INLINEBENCH_CACHE_LIMIT; default {CACHE_LIMIT_GIB:g})")
    add("--jobs", type=_positive, metavar="N", help="builds at a time (default: by cores and memory)")
    add("--headers", dest="full_headers", type=_headers, default=False, metavar="auto|full",
        help="torch's headers: slim ones where they suffice, or always the full ones")
    add("--arch", dest="architectures", type=_architectures, action="extend", default=[], metavar="LIST", help="build "
        "for these compute capabilities, such as 90 or 80,90a; repeatable (default: those of the GPUs that are there)")
    add("--build-only", action="store_true", help="build everything and evaluate nothing; with --arch it needs no GPU")
    add("--out", type=Path, metavar="FILE", help="append each result to FILE as a line of JSON")
    add("--resume", action="store_true", help="leave out what FILE has from the same sources, options and GPU")
    add("--shard", type=_shard, metavar="I/N", help="do the I-th of N parts of the work; `inlinebench merge` "
        "joins them")
    add("--junit", type=Path, metavar="FILE", help="write the results to FILE as JUnit XML")
    add("--strict", action="store_true", help="a skipped evaluation counts as not passed")
    add("--verbose", action="store_true", help="compiler output and what solutions print, on stderr")
    add("--quiet", action="store_true", help="no progress line")
    add("--version", action="version", version=f"inlinebench {__version__}")
    return parser


def _add_selection(parser: argparse.ArgumentParser, default: Options) -> None:
    add = parser.add_argument
    add("--solution", dest="solution_file", type=Path, metavar="FILE", help="evaluate FILE against the named problem")
    add("--problems", type=Path, default=default.problems, metavar="DIR", help="folder of problem files, or of folders "
        "level1, level2, ... of them")
    add("--solutions", type=Path, metavar="DIR", help="folder of <problem>/<name>.py files, or of KernelBench's "
        "level_L_problem_P_sample_S_kernel.py (default: `solutions` beside the folder of problems)")
    add("--list", dest="list_only", action="store_true", help="list problems, shapes and solutions, and stop")
    add("--level", dest="levels", type=_positive, action="append", default=[], metavar="N", help="only problems of "
        "this level (1: one operator, 2: a fusion, 3: a block); repeatable")
    add("--tag", dest="tags", action="append", default=[], metavar="NAME", help="only problems with this tag, such as "
        "reduction; repeatable")
    add("--shape", dest="shapes", action="append", default=[], metavar="NAME", help="a shape that the problem "
        "declares; repeatable (default: full; with --check every shape; on the CPU the declared ones)")
    add("--set", dest="constants", action="append", default=[], metavar="K=V", help="replace a constant of the problem")


def _add_measurement(parser: argparse.ArgumentParser, default: Options) -> None:
    add = parser.add_argument
    add("--check", action="store_true", help="correctness only")
    add("--device", default=default.device, metavar="NAME", help="auto, cuda, cuda:N or cpu")
    add("--devices", type=_devices, default=(), metavar="LIST", help="share the work among several: all, GPU numbers "
        "such as 0,1, or cpu,cpu for two judges on the CPU")
    add("--calls", type=_positive, metavar="N", help=f"calls after {WARMUP_CALLS} warm-up calls, at least (default "
        f"{CALLS}); with times, more follow until the speedup is known within {HALF_WIDTH:.1%}".replace("%", "%%")
        + " or its noise has settled")
    add("--most-calls", type=_positive, default=MOST_CALLS, metavar="N", help=f"and at most (default {MOST_CALLS})")
    add("--time-budget", type=_seconds, default=TIME_BUDGET_S, metavar="S", help="no more calls than the least after "
        f"so many seconds (default {TIME_BUDGET_S:g})")
    add("--half-width", type=_share, default=HALF_WIDTH, metavar="X", help="half-width of a speedup's interval that "
        f"is enough, as a share (default {HALF_WIDTH:g})")
    add("--precision", choices=PRECISIONS, help="cast floating-point inputs and weights, as KernelBench does (default: "
        "as the problem has them)")
    add("--baseline", dest="baselines", type=_baseline, action="append", default=[], metavar="NAME", help="compare "
        "with this as well: compile or compile-max (torch.compile of the reference, plain and max-autotune), or "
        "solution:NAME; repeatable (eager PyTorch is always there)")
    add("--profile", action="store_true", help="the kernels of one call with their times, and a report by Nsight "
        f"Compute (ncu), where that is installed, in the folder {PROFILES}")
    add("--tol", dest="tolerance", type=_tolerance, metavar="X", help="tolerance of floating outputs "
        "(default: by dtype)")
    add("--seed", type=int, metavar="N", help="replays the secret seed of a run")
    add("--variants", type=_on_off, default=True, metavar="on|off", help="negated, scaled and sign-flipped inputs")
    add("--tf32", action="store_true", help="leave TF32 as PyTorch's defaults have it")
    add("--timeout", type=_seconds, default=default.timeout, metavar="S", help="seconds for one evaluation "
        f"(default {default.timeout:g})")
    add("--build-timeout", type=_seconds, default=default.build_timeout, metavar="S",
        help=f"seconds for one build (default {default.build_timeout:g})")


def _add_trust(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--allow-library", action="store_true", help="let a solution pass without a kernel of its own")
    add("--require-sandbox", action="store_true", help="refuse to run where candidates can't be shut in")
    add("--trust", action="store_true", help="leave out sandbox, outside clock and profile: for your own kernels, "
        "where nobody cheats")
    add("--sanitize", choices=SANITIZERS, help="run each solution under that tool of NVIDIA's compute-sanitizer, at "
        "the shape `small` where there is one, untimed and outside the sandbox")
    add("--max-memory", type=_seconds, metavar="GIB", help="skip problems that need more of the device's memory "
        "(default: than is free)")
    add("--host-memory", type=_seconds, metavar="GIB", help="host memory for one candidate "
        f"(default: {HOST_MEMORY_SHARE:.0%} of what is free)".replace("%", "%%"))


def _constant(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--set {text}: write it as NAME=VALUE, for example --set M=256")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise UsageError(f"--set {text}: {value!r} is no Python literal (a number, a string, a tuple)") from error


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    number = _number(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return number


def _tolerance(text: str) -> float:
    number = _number(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance: 0 or more")
    return number


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 2/8")
    return int(part), int(parts)


def _devices(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if names == (ALL_DEVICES,) or set(names) == {"cpu"}:
        return names
    if all(name.isdecimal() for name in names) and len(set(names)) == len(names):
        return names
    raise argparse.ArgumentTypeError(f"{text!r} is neither {ALL_DEVICES} nor numbers of GPUs such as 0,1, nor cpu,cpu")


def _architectures(text: str) -> list[str]:
    """Names as nvcc has them, with or without `sm_`; without it from here on."""
    found = [re.fullmatch(r"(?:sm_)?([1-9]\d{1,2}[af]?)", name.strip()) for name in text.split(",")]
    names = [match[1] for match in found if match]
    if len(names) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of compute capabilities as nvcc writes them, such as 90 "
                                         "or 80,90a or sm_90")
    return names


def gib(text: str) -> float:
    """A size in GiB from a command line; `inf` is no limit."""
    number = _number(text)
    if not 0 <= number <= float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no size in GiB: 0 or more")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return number


def _baseline(text: str) -> str:
    if text in BASELINES or (text.startswith(SOLUTION_BASELINE) and text != SOLUTION_BASELINE):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BASELINES)}, {SOLUTION_BASELINE}NAME")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _headers(text: str) -> bool:
    if text not in ("auto", "full"):
        raise argparse.ArgumentTypeError("auto or full")
    return text == "full"


def _on_off(text: str) -> bool:
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError("on or off")
    return text == "on"
