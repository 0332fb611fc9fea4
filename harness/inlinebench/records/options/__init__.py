"""The options of a run. Each is declared in one place: a field of these records or of `judge.JudgeOptions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from inlinebench.records.catalog import Solution
from inlinebench.records.options import kinds
from inlinebench.records.options.declaration import declared, option
from inlinebench.records.options.judge import JudgeOptions
from inlinebench.records.options.kinds import COUNT, FILE, FOLDER, SWITCH

ROOT = Path(__file__).resolve().parents[4]
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
        HOME / "problems", FOLDER, "folder of problem files, or of folders level1, level2, ... of them (default: "
        "./problems, else those of this checkout)", "folders")
    solutions: Path = option(
        HOME / "solutions", FOLDER, "folder of <problem>/<name>.py files, or of KernelBench's "
        "level_L_problem_P_sample_S_kernel.py (default: `solutions` beside the folder of the problems, or ./solutions)",
        "folders")
    shapes: tuple[str, ...] = option(
        (), kinds.NAMES, "a shape that the problem declares; repeatable (default: full; every shape when only "
        "correctness is checked; on the CPU the declared ones, or else a derived one)", "shapes", flags="--shape")
    constants: Mapping[str, Any] = option(
        dict, kinds.CONSTANTS, "replace a constant of the problems that have it; repeatable", "shapes", flags="--set")
    precision: str | None = option(
        None, kinds.one_of(PRECISIONS), "cast floating-point inputs and weights, as KernelBench does (default: as the "
        "problem has them)", "shapes")
    device: str = option("auto", kinds.ONE_DEVICE, "auto, cuda, cuda:N or cpu", "device")
    devices: tuple[str, ...] = option(
        (), kinds.SEVERAL_DEVICES, "use several devices: all, GPU numbers such as 0,1, or cpu,cpu for two judges on "
        "the CPU", "devices")
    require_sandbox: bool = option(False, SWITCH, "fail if this machine does not offer the sandbox", "integrity")


@dataclass(frozen=True)
class BuildOptions:
    """The options of builds."""

    scope: ClassVar[str] = "build"
    architectures: tuple[str, ...] = option(
        (), kinds.ARCHITECTURES, "build for these compute capabilities, such as 90 or 80,90a; repeatable (default: "
        "those of the GPUs)", "builds", decides=True, flags="--arch")
    jobs: int | None = option(None, COUNT, "builds at a time (default: by cores and memory)", "builds")
    build_timeout: float = option(600.0, kinds.SECONDS, "seconds for one build", "builds", decides=True)
    full_headers: bool = option(
        "auto", kinds.words({"auto": False, "full": True}), "torch's headers: slim ones where they suffice, or always "
        "the full ones", "builds", decides=True, flags="--headers", variable="INLINEBENCH_HEADERS")
    cache: Path = option(
        "~/.cache/inlinebench", kinds.CACHE, "folder of built libraries", "builds", variable="INLINEBENCH_CACHE")
    cache_limit: float = option(
        f"{CACHE_LIMIT_GIB:g}", kinds.SIZE, "size of the cache in GiB; the least recently used libraries are removed "
        "first", "builds", variable="INLINEBENCH_CACHE_LIMIT")


@dataclass(frozen=True)
class Options(JudgeOptions, BuildOptions, JobOptions):
    """The options of a run. Those of this record itself are not settings of `evaluate`."""

    scope: ClassVar[str] = "run"
    names: tuple[str, ...] = option(
        (), kinds.NAMES, "a problem, problem/solution, a glob of either, a problem file, or the number of a problem "
        "such as 12_Matmul, or a range of numbers; PROBLEM/@reference evaluates the reference itself (default: "
        "everything)")
    responses: tuple[Solution, ...] = option(
        (), kinds.ANY, "the solutions found in the response")
    levels: tuple[int, ...] = option(
        (), COUNT.repeated("N"), "only problems of this level (1: one operator, 2: a fusion, 3: a block); repeatable",
        "folders", flags="--level")
    tags: tuple[str, ...] = option(
        (), kinds.NAMES, "only problems with this tag, such as reduction; repeatable", "folders", flags="--tag")
    solution_files: tuple[Path, ...] = option(
        (), FILE.repeated("FILE"), "evaluate FILE against the named problem; repeatable: each further one is "
        "compared with the first", "files", flags="--solution")
    response: Path | None = option(
        None, FILE, "evaluate a model's response: the last closed code block in FILE (- for standard input) that "
        "defines ModelNew", "files")
    all_blocks: bool = option(False, SWITCH, "with --response: every code block that defines ModelNew", "files")
    executor: str = option(
        EXECUTORS[0], kinds.one_of(EXECUTORS), "where to evaluate: on this machine, or on a Ray cluster with one "
        "worker for each GPU, which needs the extra `ray`", "devices")
    ray_address: str | None = option(
        None, kinds.TEXT.named("ADDRESS"), "the cluster that --executor ray joins, such as auto or ray://head:10001 "
        "(default: start Ray on this machine)", "devices")
    profile: Path | None = option(
        None, replace(FOLDER, const=PROFILES), "show the kernels of one call with their times, and write a report of "
        f"Nsight Compute (ncu), if it is installed, into the folder {PROFILES}", "times")
    out: Path | None = option(None, FILE, "append each result to FILE as a line of JSON", "results")
    resume: bool = option(
        False, SWITCH, "with --out: skip the results that FILE has from the same sources, options and GPU", "results")
    shard: tuple[int, int] | None = option(
        None, kinds.SHARD, "do the I-th of N parts of the work; `inlinebench merge` joins the results", "results")
    fail_fast: bool = option(
        False, SWITCH, "stop after the first result that is not passed or skipped", "results", flags="-x --fail-fast")
    last_failed: bool = option(
        False, SWITCH, "only the solutions that did not pass when they were last evaluated; all, if there are none",
        "results", flags="--lf --last-failed")
    junit: Path | None = option(None, FILE, "write the results to FILE as JUnit XML", "results")
    feedback: bool = option(
        False, SWITCH, "instead of the table, print what helps to go on: compiler errors with their lines, where "
        "values differ, times, kernels", "results")
    strict: bool = option(
        False, SWITCH, "count a skipped solution, and a failure at a derived shape, as not passed", "output")
    verbose: bool = option(
        False, SWITCH, "print compiler output and the output of solutions on stderr", "output", flags="-v --verbose")
    quiet: bool = option(False, SWITCH, "print no progress", "output", flags="-q --quiet")
    build_only: bool = option(False, SWITCH, "build and evaluate nothing: `inlinebench build`", "modes")
    list_only: bool = option(
        False, SWITCH, "list problems, shapes and solutions: `inlinebench list`", "modes", flags="--list")

    @property
    def judge(self) -> JudgeOptions:
        """The options that the judge gets."""
        return JudgeOptions(**{name: getattr(self, name) for name in declared(JudgeOptions)})


OPTIONS = declared(Options)
"""All options by the names of their fields."""
