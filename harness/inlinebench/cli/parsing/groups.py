"""The options of `run`, `check`, `build` and `list`, in groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from inlinebench.cli.parsing import types
from inlinebench.records.options import (
    CACHE_LIMIT_GIB,
    CALLS,
    EXECUTORS,
    HALF_WIDTH,
    HOST_MEMORY_SHARE,
    MOST_CALLS,
    PRECISIONS,
    PROFILES,
    SANITIZERS,
    TIME_BUDGET_S,
    WARMUP_CALLS,
    Options,
    default_cache,
)

Add = Callable[..., object]
"""`add_argument` of a group."""


def _add_folders(add: Add, _: Mapping[str, str]) -> None:
    add("--problems", type=Path, metavar="DIR", help="folder of problem files, or of folders level1, level2, ... of "
        "them (default: ./problems, else those of this checkout)")
    add("--solutions", type=Path, metavar="DIR", help="folder of <problem>/<name>.py files, or of KernelBench's "
        "level_L_problem_P_sample_S_kernel.py (default: `solutions` beside the folder of the problems, or ./solutions)")
    add("--level", dest="levels", type=types.whole, action="append", default=[], metavar="N", help="only problems "
        "of this level (1: one operator, 2: a fusion, 3: a block); repeatable")
    add("--tag", dest="tags", action="append", default=[], metavar="NAME", help="only problems with this tag, such as "
        "reduction; repeatable")


def _add_selection(add: Add, environment: Mapping[str, str]) -> None:
    _add_folders(add, environment)
    add("--solution", dest="solution_files", type=Path, action="append", default=[], metavar="FILE", help="evaluate "
        "FILE against the named problem; repeatable: each further one is compared with the first")
    add("--response", type=Path, metavar="FILE", help="evaluate a model's response: the last closed code block in FILE "
        "(- for standard input) that defines ModelNew")
    add("--all-blocks", action="store_true", default=False, help="with --response: every code block that defines "
        "ModelNew")


def _add_shapes(add: Add, _: Mapping[str, str]) -> None:
    add("--shape", dest="shapes", action="append", default=[], metavar="NAME", help="a shape that the problem "
        "declares; repeatable (default: full; every shape when only correctness is checked; on the CPU the declared "
        "ones, or else a derived one)")
    add("--set", dest="constants", action="append", default=[], metavar="K=V", help="replace a constant of the "
        "problems that have it; repeatable")
    add("--precision", metavar="|".join(PRECISIONS), help="cast floating-point inputs and weights, as KernelBench does "
        "(default: as the problem has them)")


def _add_inputs(add: Add, environment: Mapping[str, str]) -> None:
    _add_shapes(add, environment)
    add("--seed", type=types.whole, metavar="N", help="the secret seed of an earlier run, to draw the same inputs")
    add("--variants", type=types.on_off, default=True, metavar="on|off", help="negated, scaled and sign-flipped inputs "
        "(default: on)")


def _add_device(add: Add, _: Mapping[str, str]) -> None:
    add("--device", default=Options.device, metavar="NAME", help="auto, cuda, cuda:N or cpu (default: auto)")


def _add_devices(add: Add, environment: Mapping[str, str]) -> None:
    _add_device(add, environment)
    add("--devices", type=types.names, default=(), metavar="LIST", help="use several devices: all, GPU numbers such "
        "as 0,1, or cpu,cpu for two judges on the CPU")
    add("--executor", default=Options.executor, metavar="|".join(EXECUTORS), help="where to evaluate: on this "
        "machine, or on a Ray cluster with one worker for each GPU (needs the extra `ray`)")
    add("--ray-address", metavar="ADDRESS", help="the cluster that --executor ray joins, such as auto or "
        "ray://head:10001 (default: start Ray on this machine)")


def _add_correctness(add: Add, _: Mapping[str, str]) -> None:
    add("--tol", dest="tolerance", type=types.number, metavar="X", help="tolerance of floating-point outputs "
        "(default: by dtype)")
    add("--tf32", action="store_true", default=False, help="allow TF32 as PyTorch's defaults do")
    add("--calls", type=types.whole, metavar="N", help=f"the fewest counted calls, after {WARMUP_CALLS} warm-up "
        f"calls (default: {CALLS})")
    add("--sanitize", metavar="TOOL", help="run each solution under this tool of NVIDIA's compute-sanitizer "
        f"({', '.join(SANITIZERS)}), at the shape `small` if there is one, without times and outside the sandbox")


def _add_times(add: Add, _: Mapping[str, str]) -> None:
    add("--most-calls", type=types.whole, default=MOST_CALLS, metavar="N", help="the most counted calls (default: "
        f"{MOST_CALLS}); sampling stops when the speedup is known well enough or its noise has settled")
    add("--time-budget", type=types.number, default=TIME_BUDGET_S, metavar="S", help="stop sampling after "
        f"this many seconds, once the fewest calls are made (default: {TIME_BUDGET_S:g})")
    add("--half-width", type=types.number, default=HALF_WIDTH, metavar="X", help="stop sampling at this relative "
        f"half-width of the speedup's interval (default: {HALF_WIDTH:g})")
    add("--baseline", dest="baselines", action="append", default=[], metavar="NAME", help="also "
        "compare with compile or compile-max (torch.compile of the reference, plain and max-autotune), or "
        "solution:NAME; repeatable (eager PyTorch and the solution 'library' are always included)")
    add("--profile", action="store_true", default=False, help="show the kernels of one call with their times, and "
        f"write a report of Nsight Compute (ncu), if it is installed, into the folder {PROFILES}")


def _add_limits(add: Add, _: Mapping[str, str]) -> None:
    add("--problem-timeout", type=types.number, default=Options.problem_timeout, metavar="S", help="seconds for each "
        "step of a problem's own code: to load the file, or for one call of get_inputs or of the reference (default: "
        f"{Options.problem_timeout:g})")


def _add_integrity(add: Add, environment: Mapping[str, str]) -> None:
    add("--allow-library", action="store_true", default=False, help="let a solution pass without a kernel of its own")
    add("--require-sandbox", action="store_true", default=False, help="fail if this machine does not offer the sandbox")
    add("--trust", action="store_true", default=False, help="leave out sandbox, outside clock and profile: for your "
        "own kernels")
    add("--timeout", type=types.number, default=Options.timeout, metavar="S", help="seconds for one "
        f"evaluation (default: {Options.timeout:g})")
    _add_limits(add, environment)
    add("--max-memory", type=types.number, metavar="GIB", help="skip problems that need more device memory "
        "(default: the free memory)")
    add("--host-memory", type=types.number, metavar="GIB", help="host memory for one candidate "
        f"(default: {HOST_MEMORY_SHARE:.0%} of the free memory)".replace("%", "%%"))


def _add_builds(add: Add, environment: Mapping[str, str]) -> None:
    add("--arch", dest="architectures", type=types.architectures, action="extend", default=[], metavar="LIST",
        help="build for these compute capabilities, such as 90 or 80,90a; repeatable (default: those of the GPUs)")
    add("--jobs", type=types.whole, metavar="N", help="builds at a time (default: by cores and memory)")
    add("--build-timeout", type=types.number, default=Options.build_timeout, metavar="S",
        help=f"seconds for one build (default: {Options.build_timeout:g})")
    add("--headers", dest="full_headers", type=types.headers, default=environment.get("INLINEBENCH_HEADERS") or "auto",
        metavar="auto|full", help="torch's headers: slim ones where they suffice, or always the full ones (default: "
        "INLINEBENCH_HEADERS, else auto)")
    add("--cache", type=Path, default=default_cache(environment), metavar="DIR", help="folder of built libraries "
        "(default: INLINEBENCH_CACHE, else ~/.cache/inlinebench)")
    add("--cache-limit", type=types.number, metavar="GIB", help="size of the cache; the least recently used "
        f"libraries are removed first (default: INLINEBENCH_CACHE_LIMIT, else {CACHE_LIMIT_GIB:g})")


def _add_build_results(add: Add, _: Mapping[str, str]) -> None:
    add("--strict", action="store_true", default=False, help="count a skipped solution, and a "
        "failure at a derived shape, as not passed")
    add("-v", "--verbose", action="store_true", default=False, help="print compiler output and the output of "
        "solutions on stderr")
    add("-q", "--quiet", action="store_true", default=False, help="print no progress")


def _add_results(add: Add, environment: Mapping[str, str]) -> None:
    add("--out", type=Path, metavar="FILE", help="append each result to FILE as a line of JSON")
    add("--resume", action="store_true", default=False, help="with --out: skip the results that FILE has from the same "
        "sources, options and GPU")
    add("--shard", type=types.shard, metavar="I/N", help="do the I-th of N parts of the work; `inlinebench merge` "
        "joins the results")
    add("-x", "--fail-fast", action="store_true", default=False, help="stop after the first result that is not passed "
        "or skipped")
    add("--lf", "--last-failed", dest="last_failed", action="store_true", default=False, help="only the solutions that "
        "did not pass when they were last evaluated; all, if there are none")
    add("--junit", type=Path, metavar="FILE", help="write the results to FILE as JUnit XML")
    add("--feedback", action="store_true", default=False, help="instead of the table, print what helps to go on: "
        "compiler errors with their lines, where values differ, times, kernels")
    _add_build_results(add, environment)


def _add_audit(add: Add, _: Mapping[str, str]) -> None:
    add("--timeout", type=types.number, default=Options.timeout, metavar="S", help="seconds for one problem at one "
        f"shape (default: {Options.timeout:g})")
    add("--json", action="store_true", default=False, help="print a line of JSON for each problem and shape")


def _add_modes(add: Add, _: Mapping[str, str]) -> None:
    add("--check", action="store_true", default=False, help="correctness only: `inlinebench check`")
    add("--build-only", action="store_true", default=False, help="build and evaluate nothing: `inlinebench build`")
    add("--list", dest="list_only", action="store_true", default=False, help="list problems, shapes and solutions: "
        "`inlinebench list`")


GROUPS: Mapping[str, Callable[[Add, Mapping[str, str]], None]] = {
    "folders": _add_folders,
    "what to evaluate": _add_selection,
    "what to build": _add_selection,
    "shapes": _add_shapes,
    "inputs": _add_inputs,
    "device": _add_device,
    "devices": _add_devices,
    "correctness": _add_correctness,
    "times": _add_times,
    "limits": _add_limits,
    "integrity and limits": _add_integrity,
    "builds": _add_builds,
    "build results": _add_build_results,
    "results": _add_results,
    "audit": _add_audit,
    "other modes": _add_modes,
}
