"""The options of a run. Each is declared in one place: a field of these records or of `judge.JudgeOptions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from inlinebench.catalog import Solution
from inlinebench.options import kinds
from inlinebench.options.declaration import declared, option
from inlinebench.options.judge import JudgeOptions
from inlinebench.options.kinds import COUNT, FILE, FOLDER, SWITCH

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT if (ROOT / "problems").is_dir() else Path()
"""The parent of `problems/` and `solutions/`: this checkout, or the current folder for an installed package."""
PRECISIONS = ("fp32", "fp16", "bf16")
STANDARD_INPUT = "-"
PROFILES = Path("profiles")
RAY = "ray"
EXECUTORS = ("local", RAY)
CACHE_LIMIT_GIB = 10.0
OLD_NAMES = {"calls": "min_calls", "most_calls": "max_calls"}
"""Names of options that were renamed. They work for one release."""


@dataclass(frozen=True)
class JobOptions:
    """The options that say which solution is evaluated on which problem, and where."""

    scope: ClassVar[str] = "job"
    problems: Path = option(
        HOME / "problems", FOLDER, "folder of problem files, of folders level1, level2, ... with problem files, or of "
        "definitions of FlashInfer-Trace or SOL-ExecBench (default: ./problems, or the problems of this checkout)",
        "folders")
    solutions: Path = option(
        HOME / "solutions", FOLDER, "folder of <problem>/<name>.py files, or of KernelBench samples "
        "level_L_problem_P_sample_S_kernel.py (default: `solutions` next to the problems folder, or ./solutions)",
        "folders")
    shapes: tuple[str, ...] = option(
        (), kinds.NAMES, "shape declared by the problem; repeatable (default: full; every declared shape when only "
        "correctness is checked; on the CPU the declared shapes, or a derived shape)", "shapes", flags="--shape")
    constants: Mapping[str, Any] = option(
        dict, kinds.CONSTANTS, "override a constant of the problems that define it; repeatable", "shapes",
        flags="--set")
    precision: str | None = option(
        None, kinds.one_of(PRECISIONS), "cast floating-point inputs and weights, as KernelBench does (default: no "
        "cast)", "shapes")
    backward: bool = option(
        False, SWITCH, "a call is forward and backward: the gradients of all floating-point inputs and parameters are "
        "computed and compared as well (default: what the problem declares with BACKWARD)", "shapes")
    device: str = option("auto", kinds.ONE_DEVICE, "auto, cuda, cuda:N or cpu", "device")
    devices: tuple[str, ...] = option(
        (), kinds.SEVERAL_DEVICES, "run on several devices: all, GPU numbers such as 0,1, or cpu,cpu for two judges "
        "on the CPU", "devices")
    require_sandbox: bool = option(
        False, SWITCH, "fail if the full sandbox is not available on this machine", "integrity")


@dataclass(frozen=True)
class BuildOptions:
    """The options of builds."""

    scope: ClassVar[str] = "build"
    architectures: tuple[str, ...] = option(
        (), kinds.ARCHITECTURES, "compute capabilities to build for, such as 90 or 80,90a; repeatable (default: "
        "those of the GPUs in use)", "builds", decides=True, flags="--arch")
    jobs: int | None = option(
        None, COUNT, "maximum number of parallel builds (default: based on cores and free memory)", "builds")
    build_timeout: float = option(600.0, kinds.SECONDS, "time limit for one build, in seconds", "builds", decides=True)
    full_headers: bool = option(
        "auto", kinds.words({"auto": False, "full": True}), "PyTorch headers: auto uses slim headers where they "
        "suffice, full always uses the full headers", "builds", decides=True, flags="--headers",
        variable="INLINEBENCH_HEADERS")
    cache: Path = option(
        "~/.cache/inlinebench", kinds.CACHE, "cache folder for built libraries", "builds", variable="INLINEBENCH_CACHE")
    cache_limit: float = option(
        f"{CACHE_LIMIT_GIB:g}", kinds.SIZE, "maximum size of the cache in GiB; the least recently used libraries are "
        "removed first", "builds", variable="INLINEBENCH_CACHE_LIMIT")


@dataclass(frozen=True)
class Options(JudgeOptions, BuildOptions, JobOptions):
    """The options of a run. Those of this record itself are not settings of `evaluate`."""

    scope: ClassVar[str] = "run"
    names: tuple[str, ...] = option(
        (), kinds.NAMES, "problem, problem/solution, glob of either, path of a problem file, or number (or range of "
        "numbers) of problems named like 12_Matmul; PROBLEM/@reference evaluates the reference itself (default: "
        "everything)")
    responses: tuple[Solution, ...] = option(
        (), kinds.ANY, "the solutions found in the response")
    levels: tuple[int, ...] = option(
        (), COUNT.repeated("N"), "select problems of this level (1: one operator, 2: fusion, 3: block); repeatable",
        "folders", flags="--level")
    tags: tuple[str, ...] = option(
        (), kinds.NAMES, "select problems with this tag, such as reduction; repeatable", "folders", flags="--tag")
    solution_files: tuple[Path, ...] = option(
        (), FILE.repeated("FILE"), "evaluate FILE against the named problem; if repeated, each further file "
        "is compared with the first", "files", flags="--solution")
    response: Path | None = option(
        None, FILE, "evaluate a model response: the last closed code block in FILE (- for standard input) that "
        "defines ModelNew", "files")
    all_blocks: bool = option(
        False, SWITCH, "with --response: evaluate every code block that defines ModelNew", "files")
    executor: str = option(
        EXECUTORS[0], kinds.one_of(EXECUTORS), "where to evaluate: on this machine, or on a Ray cluster with one "
        "worker per GPU (requires the extra `ray`)", "devices")
    ray_address: str | None = option(
        None, kinds.TEXT.named("ADDRESS"), "cluster that --executor ray connects to, such as auto or "
        "ray://head:10001 (default: start Ray on this machine)", "devices")
    workloads: bool = option(
        False, SWITCH, "evaluate problems that declare WORKLOADS at all of these, with one process for each solution; "
        "other problems are left out", "shapes")
    fuzz: int | None = option(
        None, COUNT, "check correctness at N sizes that are drawn from the problem's RANGES, or else from ranges "
        "derived from its constants, and report the smallest one that fails", "correctness")
    profile: Path | None = option(
        None, replace(FOLDER, const=PROFILES), "show the kernels of one call with their times; if Nsight "
        f"Compute (ncu) is installed, also write its report to DIR, or to {PROFILES} if DIR is omitted", "times")
    out: Path | None = option(None, FILE, "append each result to FILE as one line of JSON", "results")
    resume: bool = option(
        False, SWITCH, "with --out: skip evaluations that already have a result in FILE from the same sources, options "
        "and GPU", "results")
    shard: tuple[int, int] | None = option(
        None, kinds.SHARD, "do part I of N of the work; `inlinebench merge` joins the results", "results")
    fail_fast: bool = option(
        False, SWITCH, "stop after the first result that is neither passed nor skipped", "results",
        flags="-x --fail-fast")
    last_failed: bool = option(
        False, SWITCH, "evaluate only solutions that did not pass the last time, or all if there are none", "results",
        flags="--lf --last-failed")
    junit: Path | None = option(None, FILE, "write the results to FILE as JUnit XML", "results")
    feedback: bool = option(
        False, SWITCH, "instead of the table, print detailed feedback: compiler errors with source lines, where values "
        "differ, times, kernels", "results")
    strict: bool = option(
        False, SWITCH, "count skipped solutions, and failures at a derived shape, as failures", "output")
    verbose: bool = option(
        False, SWITCH, "print the output of compilers and solutions to stderr", "output", flags="-v --verbose")
    quiet: bool = option(False, SWITCH, "do not print progress", "output", flags="-q --quiet")
    build_only: bool = option(False, SWITCH, "build without evaluating: `inlinebench build`", "modes")
    list_only: bool = option(
        False, SWITCH, "list problems, shapes and solutions: `inlinebench list`", "modes", flags="--list")

    @property
    def judge(self) -> JudgeOptions:
        """The options that the judge gets."""
        return JudgeOptions(**{name: getattr(self, name) for name in declared(JudgeOptions)})


OPTIONS = declared(Options)
"""All options by the names of their fields."""
