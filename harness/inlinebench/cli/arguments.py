"""The command line of `run`, `check`, `build` and `list`."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench.cli import argument_types as types
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
)
from inlinebench.version import __version__

Add = Callable[..., object]
"""`add_argument` of a group."""


@dataclass(frozen=True)
class Command:
    """One of the commands that take problems and solutions."""

    name: str
    description: str
    groups: tuple[str, ...]
    """The groups of its options, in the order of its help."""
    flag: str | None = None
    """The option of `run` that does the same."""
    examples: str = ""


_EVALUATION = ("what to evaluate", "inputs", "devices", "correctness")
RUN = Command(
    "run", "Checks CUDA kernels against their PyTorch references and times both.",
    (*_EVALUATION, "times", "integrity and limits", "builds", "results", "other modes"),
    examples="""\
  {prog}                           every problem with every solution, as a table
  {prog} matmul_diag/naive         one solution
  {prog} --check --junit out.xml   a gate in CI: correctness only, every shape, exit status
""")
CHECK = Command(
    "check", "Checks correctness only, at every shape that a problem declares.",
    (*_EVALUATION, "integrity and limits", "builds", "results"), "check",
    examples="""\
  {prog} matmul_diag               every solution of one problem
  {prog} --junit out.xml           a gate in CI
""")
BUILD = Command(
    "build", "Builds solutions and evaluates nothing. With --arch this needs no GPU.",
    ("what to build", "shapes", "device", "builds", "build results"), "build_only",
    examples="""\
  {prog} --arch 90                 everything, for compute capability 9.0
  {prog} 'matmul_*/fast' --arch 80,90a
""")
LIST = Command("list", "Lists problems with their shapes and solutions.", ("folders",), "list_only")
EVALUATING = {command.name: command for command in (RUN, CHECK, BUILD, LIST)}
"""The commands of this module, by name."""


def parse(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ, command: Command = RUN,
    prog: str = "run_eval.py",
) -> Options:
    """The options that a command line asks for. `prog` is the name of the program in its help.

    Raises UsageError for options that contradict each other. Raises SystemExit for `--help`, `--version` and options
    that the command does not have.
    """
    given = _parser(RUN, environment, prog).parse_args([])  # the defaults of options that the command does not have
    if command.flag is not None:
        setattr(given, command.flag, True)
    _parser(command, environment, prog).parse_args(arguments, given)
    _check_selection(given)
    _check_devices(given)
    _check_builds(given)
    _check_results(given)
    _fill_in(given, environment)
    return Options(**vars(given))


def _fill_in(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Sets what follows from other options."""
    given.profile = PROFILES if given.profile else None
    if given.calls is None:
        given.calls = SANITIZED_CALLS if given.sanitize else CALLS
    given.most_calls = max(given.most_calls, given.calls)
    given.baselines = tuple(dict.fromkeys(name for name in given.baselines if name != BASELINES[0]))
    given.constants = dict(types.constant(text) for text in given.constants)
    for name in ("names", "shapes", "levels", "tags"):
        setattr(given, name, tuple(getattr(given, name)))
    given.cache = given.cache.expanduser()
    given.problems, given.solutions = _folders(given.problems, given.solutions, given.names)
    if given.cache_limit is None:
        given.cache_limit = default_cache_limit(environment)
    given.architectures = tuple(dict.fromkeys(given.architectures))


def _folders(problems: Path | None, solutions: Path | None, names: Sequence[str]) -> tuple[Path, Path]:
    """The folders of problems and solutions.

    Problems: as given, else `./problems`, else those of this checkout. Solutions: as given, else `solutions` beside the
    folder of a problem that is named by its path, else beside the given problems, else `./solutions`, else those of
    this checkout. Raises UsageError if problems are named by paths in several folders and `--solutions` is not given.
    """
    files = {path.resolve().parent for path in map(Path, names) if path.suffix == ".py" and path.is_file()}
    beside_files = [folder.parent / "solutions" for folder in sorted(files)]
    found = [folder for folder in beside_files if folder.is_dir()]
    if solutions is None and len(found) > 1:
        raise UsageError("the problems are in several folders with solutions beside them: give --solutions DIR")
    given = problems
    if problems is None:
        local = Path("problems").resolve()
        problems = local if local.is_dir() else Options.problems
    if solutions is None:
        local = Path("solutions").resolve()
        if found:
            solutions = found[0]
        elif given is not None or problems == Path("problems").resolve():
            solutions = problems.parent / "solutions"
        else:
            solutions = local if local.is_dir() else Options.solutions
    return problems, solutions


def _check_selection(given: argparse.Namespace) -> None:
    if given.constants and given.shapes:
        raise UsageError("--set and --shape exclude each other: --set changes the constants of the file as written")
    for flag, value in (("--solution", given.solution_file), ("--response", given.response)):
        if value is not None and len(given.names) != 1:
            raise UsageError(f"{flag} FILE needs exactly one problem name to be evaluated against")
    if given.solution_file is not None and given.response is not None:
        raise UsageError("--solution and --response exclude each other")
    if given.all_blocks and given.response is None:
        raise UsageError("--all-blocks needs --response FILE")


def _check_devices(given: argparse.Namespace) -> None:
    if not re.fullmatch(DEVICE, given.device):
        raise UsageError(f"--device {given.device}: choose from auto, cuda, cuda:N, cpu")
    if given.profile and given.device == "cpu":
        raise UsageError("--profile needs a GPU")
    if given.sanitize is not None and given.device == "cpu":
        raise UsageError("--sanitize needs a GPU: compute-sanitizer checks kernels that run there")
    if given.devices and given.device != Options.device:
        raise UsageError("--device and --devices exclude each other")
    if given.ray_address is not None and given.executor != RAY:
        raise UsageError("--ray-address needs --executor ray")
    if given.executor == RAY:
        _check_ray(given)


def _check_results(given: argparse.Namespace) -> None:
    if given.resume and given.out is None:
        raise UsageError("--resume needs --out FILE: it skips the results that FILE has")
    if given.shard and any(name.startswith(SOLUTION_BASELINE) for name in given.baselines):
        raise UsageError(f"--shard and --baseline {SOLUTION_BASELINE}NAME exclude each other: the two solutions may be "
                         "in different shards")


def _check_ray(given: argparse.Namespace) -> None:
    if given.devices not in ((), (ALL_DEVICES,)) and set(given.devices) != {"cpu"}:
        raise UsageError("--executor ray: Ray chooses the GPUs; use --devices all, or cpu,cpu for two workers on CPUs")
    if given.device.startswith("cuda:"):
        raise UsageError(f"--executor ray: Ray chooses the GPUs; use --device cuda instead of {given.device}")
    for flag, value in (("--profile", given.profile), ("--build-only", given.build_only)):
        if value:
            raise UsageError(f"{flag} works on one machine, without --executor ray")


def _check_builds(given: argparse.Namespace) -> None:
    if given.architectures and (given.device == "cpu" or "cpu" in given.devices):
        raise UsageError("--arch is for GPUs: leave out --arch or the CPU")
    if not given.build_only:
        return
    for flag, value in (("--devices", given.devices), ("--sanitize", given.sanitize), ("--profile", given.profile),
                        ("--out", given.out), ("--junit", given.junit), ("--shard", given.shard)):
        if value:
            raise UsageError(f"--build-only evaluates nothing: leave out {flag}")


def _parser(command: Command, environment: Mapping[str, str], prog: str) -> argparse.ArgumentParser:
    examples = command.examples.format(prog=f"python {prog}" if prog.endswith(".py") else prog)
    names = "" if command is LIST else " [NAME ...]"
    parser = argparse.ArgumentParser(
        prog=prog, usage=f"{prog} [options]{names}", description=command.description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"examples:\n{examples}" if examples else None,
    )
    parser.add_argument("--version", action="version", version=f"inlinebench {__version__}")
    if command is not LIST:
        parser.add_argument(
            "names", nargs="*", metavar="NAME", default=[], help="a problem, problem/solution, a glob of either, a "
            "problem file, or the number of a problem such as 12_Matmul, or a range of numbers; PROBLEM/@reference "
            "evaluates the reference itself (default: everything)")
    for title in command.groups:
        _GROUPS[title](parser.add_argument_group(title).add_argument, environment)
    return parser


def _add_folders(add: Add, _: Mapping[str, str]) -> None:
    add("--problems", type=Path, metavar="DIR", help="folder of problem files, or of folders level1, level2, ... of "
        "them (default: ./problems, else those of this checkout)")
    add("--solutions", type=Path, metavar="DIR", help="folder of <problem>/<name>.py files, or of KernelBench's "
        "level_L_problem_P_sample_S_kernel.py (default: `solutions` beside the folder of the problems, or ./solutions)")
    add("--level", dest="levels", type=types.positive, action="append", default=[], metavar="N", help="only problems "
        "of this level (1: one operator, 2: a fusion, 3: a block); repeatable")
    add("--tag", dest="tags", action="append", default=[], metavar="NAME", help="only problems with this tag, such as "
        "reduction; repeatable")


def _add_selection(add: Add, environment: Mapping[str, str]) -> None:
    _add_folders(add, environment)
    add("--solution", dest="solution_file", type=Path, metavar="FILE", help="evaluate FILE against the named problem")
    add("--response", type=Path, metavar="FILE", help="evaluate a model's response: the last closed code block in FILE "
        "(- for standard input) that defines ModelNew")
    add("--all-blocks", action="store_true", default=False, help="with --response: every code block that defines "
        "ModelNew")


def _add_shapes(add: Add, _: Mapping[str, str]) -> None:
    add("--shape", dest="shapes", action="append", default=[], metavar="NAME", help="a shape that the problem "
        "declares; repeatable (default: full; every shape when only correctness is checked; on the CPU the declared "
        "ones)")
    add("--set", dest="constants", action="append", default=[], metavar="K=V", help="replace a constant of the problem")
    add("--precision", choices=PRECISIONS, help="cast floating-point inputs and weights, as KernelBench does (default: "
        "as the problem has them)")


def _add_inputs(add: Add, environment: Mapping[str, str]) -> None:
    _add_shapes(add, environment)
    add("--seed", type=int, metavar="N", help="the secret seed of an earlier run, to draw the same inputs")
    add("--variants", type=types.on_off, default=True, metavar="on|off", help="negated, scaled and sign-flipped inputs "
        "(default: on)")


def _add_device(add: Add, _: Mapping[str, str]) -> None:
    add("--device", default=Options.device, metavar="NAME", help="auto, cuda, cuda:N or cpu (default: auto)")


def _add_devices(add: Add, environment: Mapping[str, str]) -> None:
    _add_device(add, environment)
    add("--devices", type=types.devices, default=(), metavar="LIST", help="use several devices: all, GPU numbers such "
        "as 0,1, or cpu,cpu for two judges on the CPU")
    add("--executor", choices=EXECUTORS, default=Options.executor, help="where to evaluate: on this machine, or on a "
        "Ray cluster with one worker for each GPU (needs the extra `ray`)")
    add("--ray-address", metavar="ADDRESS", help="the cluster that --executor ray joins, such as auto or "
        "ray://head:10001 (default: start Ray on this machine)")


def _add_correctness(add: Add, _: Mapping[str, str]) -> None:
    add("--tol", dest="tolerance", type=types.tolerance, metavar="X", help="tolerance of floating-point outputs "
        "(default: by dtype)")
    add("--tf32", action="store_true", default=False, help="allow TF32 as PyTorch's defaults do")
    add("--calls", type=types.positive, metavar="N", help=f"the fewest counted calls, after {WARMUP_CALLS} warm-up "
        f"calls (default: {CALLS})")
    add("--sanitize", choices=SANITIZERS, help="run each solution under this tool of NVIDIA's compute-sanitizer, at "
        "the shape `small` if there is one, without times and outside the sandbox")


def _add_times(add: Add, _: Mapping[str, str]) -> None:
    add("--most-calls", type=types.positive, default=MOST_CALLS, metavar="N", help="the most counted calls (default: "
        f"{MOST_CALLS}); sampling stops when the speedup is known well enough or its noise has settled")
    add("--time-budget", type=types.positive_number, default=TIME_BUDGET_S, metavar="S", help="stop sampling after "
        f"this many seconds, once the fewest calls are made (default: {TIME_BUDGET_S:g})")
    add("--half-width", type=types.share, default=HALF_WIDTH, metavar="X", help="stop sampling at this relative "
        f"half-width of the speedup's interval (default: {HALF_WIDTH:g})")
    add("--baseline", dest="baselines", type=types.baseline, action="append", default=[], metavar="NAME", help="also "
        "compare with compile or compile-max (torch.compile of the reference, plain and max-autotune), or "
        "solution:NAME; repeatable (eager PyTorch is always included)")
    add("--profile", action="store_true", default=False, help="show the kernels of one call with their times, and "
        f"write a report of Nsight Compute (ncu), if it is installed, into the folder {PROFILES}")


def _add_integrity(add: Add, _: Mapping[str, str]) -> None:
    add("--allow-library", action="store_true", default=False, help="let a solution pass without a kernel of its own")
    add("--require-sandbox", action="store_true", default=False, help="fail if this machine does not offer the sandbox")
    add("--trust", action="store_true", default=False, help="leave out sandbox, outside clock and profile: for your "
        "own kernels")
    add("--timeout", type=types.positive_number, default=Options.timeout, metavar="S", help="seconds for one "
        f"evaluation (default: {Options.timeout:g})")
    add("--max-memory", type=types.positive_number, metavar="GIB", help="skip problems that need more device memory "
        "(default: the free memory)")
    add("--host-memory", type=types.positive_number, metavar="GIB", help="host memory for one candidate "
        f"(default: {HOST_MEMORY_SHARE:.0%} of the free memory)".replace("%", "%%"))


def _add_builds(add: Add, environment: Mapping[str, str]) -> None:
    add("--arch", dest="architectures", type=types.architectures, action="extend", default=[], metavar="LIST",
        help="build for these compute capabilities, such as 90 or 80,90a; repeatable (default: those of the GPUs)")
    add("--jobs", type=types.positive, metavar="N", help="builds at a time (default: by cores and memory)")
    add("--build-timeout", type=types.positive_number, default=Options.build_timeout, metavar="S",
        help=f"seconds for one build (default: {Options.build_timeout:g})")
    add("--headers", dest="full_headers", type=types.headers, default=environment.get("INLINEBENCH_HEADERS") or "auto",
        metavar="auto|full", help="torch's headers: slim ones where they suffice, or always the full ones (default: "
        "INLINEBENCH_HEADERS, else auto)")
    add("--cache", type=Path, default=default_cache(environment), metavar="DIR", help="folder of built libraries "
        "(default: INLINEBENCH_CACHE, else ~/.cache/inlinebench)")
    add("--cache-limit", type=gib, metavar="GIB", help="size of the cache; the least recently used libraries are "
        f"removed first (default: INLINEBENCH_CACHE_LIMIT, else {CACHE_LIMIT_GIB:g})")


def _add_build_results(add: Add, _: Mapping[str, str]) -> None:
    add("--strict", action="store_true", default=False, help="count a skipped solution as not passed")
    add("--verbose", action="store_true", default=False, help="print compiler output and the output of solutions on "
        "stderr")
    add("--quiet", action="store_true", default=False, help="print no progress")


def _add_results(add: Add, environment: Mapping[str, str]) -> None:
    add("--out", type=Path, metavar="FILE", help="append each result to FILE as a line of JSON")
    add("--resume", action="store_true", default=False, help="with --out: skip the results that FILE has from the same "
        "sources, options and GPU")
    add("--shard", type=types.shard, metavar="I/N", help="do the I-th of N parts of the work; `inlinebench merge` "
        "joins the results")
    add("--junit", type=Path, metavar="FILE", help="write the results to FILE as JUnit XML")
    add("--feedback", action="store_true", default=False, help="instead of the table, print what helps to go on: "
        "compiler errors with their lines, where values differ, times, kernels")
    _add_build_results(add, environment)


def _add_modes(add: Add, _: Mapping[str, str]) -> None:
    add("--check", action="store_true", default=False, help="correctness only: `inlinebench check`")
    add("--build-only", action="store_true", default=False, help="build and evaluate nothing: `inlinebench build`")
    add("--list", dest="list_only", action="store_true", default=False, help="list problems, shapes and solutions: "
        "`inlinebench list`")


_GROUPS: Mapping[str, Callable[[Add, Mapping[str, str]], None]] = {
    "folders": _add_folders,
    "what to evaluate": _add_selection,
    "what to build": _add_selection,
    "shapes": _add_shapes,
    "inputs": _add_inputs,
    "device": _add_device,
    "devices": _add_devices,
    "correctness": _add_correctness,
    "times": _add_times,
    "integrity and limits": _add_integrity,
    "builds": _add_builds,
    "build results": _add_build_results,
    "results": _add_results,
    "other modes": _add_modes,
}
