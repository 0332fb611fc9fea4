"""The command line of a run."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inlinebench.records.errors import UsageError
from inlinebench.records.options import (
    ALL_DEVICES,
    BASELINES,
    CACHE_LIMIT_GIB,
    CALLS,
    DEVICE,
    EXECUTORS,
    HALF_WIDTH,
    HOST_MEMORY_SHARE,
    MOST_CALLS,
    PRECISIONS,
    PROFILES,
    RAY,
    SANITIZED_CALLS,
    SANITIZERS,
    SOLUTION_BASELINE,
    TIME_BUDGET_S,
    WARMUP_CALLS,
    Options,
    default_cache,
    default_cache_limit,
    gib,
    number_of,
)
from inlinebench.version import __version__

EXAMPLES = """\
examples:
  python run_eval.py                           every problem with every solution, as a table
  python run_eval.py matmul_diag/naive         one solution, again and again while working on it
  python run_eval.py --check --junit out.xml   a gate in CI: correctness only, every shape, exit status
"""



def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """The options that a command line asks for.

    Raises UsageError for what can't be meant; leaves through SystemExit for `--help`, `--version` and unknown flags.
    """
    given = _parser(environment).parse_args(arguments)
    _check_selection(given)
    _check_devices(given)
    _check_builds(given)
    _check_results(given)
    _fill_in(given, environment)
    return Options(**vars(given))


def _fill_in(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """What follows from something else."""
    given.profile = PROFILES if given.profile else None
    if given.calls is None:
        given.calls = SANITIZED_CALLS if given.sanitize else CALLS
    given.most_calls = max(given.most_calls, given.calls)
    given.baselines = tuple(dict.fromkeys(name for name in given.baselines if name != BASELINES[0]))
    given.constants = dict(_constant(text) for text in given.constants)
    for name in ("names", "shapes", "levels", "tags"):
        setattr(given, name, tuple(getattr(given, name)))
    given.cache = given.cache.expanduser()
    given.solutions = given.solutions or given.problems.parent / "solutions"
    if given.cache_limit is None:
        given.cache_limit = default_cache_limit(environment)
    given.architectures = tuple(dict.fromkeys(given.architectures))


def _check_selection(given: argparse.Namespace) -> None:
    if given.constants and given.shapes:
        raise UsageError("--set and --shape exclude each other: --set changes the constants of the file as written")
    for flag, value in (("--solution", given.solution_file), ("--response", given.response)):
        if value is not None and len(given.names) != 1:
            raise UsageError(f"{flag} FILE needs exactly one problem name to be evaluated against")
    if given.solution_file is not None and given.response is not None:
        raise UsageError("--solution and --response exclude each other")
    if given.all_blocks and given.response is None:
        raise UsageError("--all-blocks is for --response FILE")


def _check_devices(given: argparse.Namespace) -> None:
    if not re.fullmatch(DEVICE, given.device):
        raise UsageError(f"--device {given.device}: write auto, cuda, cuda:N or cpu")
    if given.profile and given.device == "cpu":
        raise UsageError("--profile needs a GPU: it tells what runs there")
    if given.sanitize is not None and given.device == "cpu":
        raise UsageError("--sanitize needs a GPU: compute-sanitizer looks into kernels that run there")
    if given.devices and given.device != Options.device:
        raise UsageError("--device and --devices exclude each other")
    if given.ray_address is not None and given.executor != RAY:
        raise UsageError("--ray-address is for --executor ray")
    if given.executor == RAY:
        _check_ray(given)


def _check_results(given: argparse.Namespace) -> None:
    if given.resume and given.out is None:
        raise UsageError("--resume needs --out FILE: it leaves out what that file has already")
    if given.shard and any(name.startswith(SOLUTION_BASELINE) for name in given.baselines):
        raise UsageError(f"--shard and --baseline {SOLUTION_BASELINE}NAME exclude each other: the two solutions of a "
                         "comparison may be in different parts")


def _check_ray(given: argparse.Namespace) -> None:
    if given.devices not in ((), (ALL_DEVICES,)) and set(given.devices) != {"cpu"}:
        raise UsageError("--executor ray: Ray chooses the GPUs; --devices all takes them all, cpu,cpu has two workers "
                         "on CPUs")
    if given.device.startswith("cuda:"):
        raise UsageError(f"--executor ray: Ray chooses the GPUs; write --device cuda instead of {given.device}")
    for flag, value in (("--profile", given.profile), ("--build-only", given.build_only)):
        if value:
            raise UsageError(f"{flag} works on one machine, without --executor ray")


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
    add("--headers", dest="full_headers", type=_headers, default=environment.get("INLINEBENCH_HEADERS") or "auto",
        metavar="auto|full", help="torch's headers: slim ones where they suffice, or always the full ones (or "
        "INLINEBENCH_HEADERS)")
    add("--arch", dest="architectures", type=_architectures, action="extend", default=[], metavar="LIST", help="build "
        "for these compute capabilities, such as 90 or 80,90a; repeatable (default: those of the GPUs that are there)")
    add("--executor", choices=EXECUTORS, default=default.executor, help="where judges run: on this machine, or as "
        "workers of Ray, one for each GPU of its cluster (needs the extra `ray`; docs/scale.md)")
    add("--ray-address", metavar="ADDRESS", help="the cluster that --executor ray joins, such as auto or "
        "ray://head:10001 (default: start Ray on this machine)")
    add("--build-only", action="store_true", help="build everything and evaluate nothing; with --arch it needs no GPU")
    add("--out", type=Path, metavar="FILE", help="append each result to FILE as a line of JSON")
    add("--resume", action="store_true", help="leave out what FILE has from the same sources, options and GPU")
    add("--shard", type=_shard, metavar="I/N", help="do the I-th of N parts of the work; `inlinebench merge` "
        "joins them")
    add("--junit", type=Path, metavar="FILE", help="write the results to FILE as JUnit XML")
    add("--strict", action="store_true", help="a skipped evaluation counts as not passed")
    add("--feedback", action="store_true", help="instead of the table what a person or a model needs to go on: errors "
        "with their lines, where values differ, times, the roofline, kernels")
    add("--verbose", action="store_true", help="compiler output and what solutions print, on stderr")
    add("--quiet", action="store_true", help="no progress line")
    add("--version", action="version", version=f"inlinebench {__version__}")
    return parser


def _add_selection(parser: argparse.ArgumentParser, default: Options) -> None:
    add = parser.add_argument
    add("--solution", dest="solution_file", type=Path, metavar="FILE", help="evaluate FILE against the named problem")
    add("--response", type=Path, metavar="FILE", help="evaluate what a model answered, as it is: the last whole block "
        "of code in FILE (- for standard input) that defines ModelNew")
    add("--all-blocks", action="store_true", help="with --response: each block that defines ModelNew")
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
    number = number_of(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return number


def _tolerance(text: str) -> float:
    number = number_of(text)
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


def _share(text: str) -> float:
    number = number_of(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return number


def _baseline(text: str) -> str:
    if text in BASELINES or (text.startswith(SOLUTION_BASELINE) and text != SOLUTION_BASELINE):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BASELINES)}, {SOLUTION_BASELINE}NAME")


def _headers(text: str) -> bool:
    if text not in ("auto", "full"):
        raise argparse.ArgumentTypeError("auto or full")
    return text == "full"


def _on_off(text: str) -> bool:
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError("on or off")
    return text == "on"
