"""Plans a run: which solutions are evaluated, at which shapes, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inlinebench.catalog import DERIVED, FULL, REFERENCE, Catalog, Problem, Solution, selection
from inlinebench.catalog.natural_sort import natural
from inlinebench.catalog.workloads import DeclaredWorkload, named
from inlinebench.device_kinds import kind_of
from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate, Fuzz, ProblemAt
from inlinebench.options import Options
from inlinebench.options.kinds import SOLUTION_BASELINE
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import WITH_BACKWARD, Result, Shard, Verdict
from inlinebench.scheduler.identity import digest_of
from inlinebench.scheduler.rivals import rival_names

FUZZ = "fuzz"
"""The name of the drawn sizes of `--fuzz` in results."""
SMALL = "small"
"""The shape for sanitizers, if a problem declares it. They make kernels some hundred times slower."""

Choice = tuple[Problem | None, Solution]
"""A solution with its problem, or with None if the problem does not exist."""


@dataclass(frozen=True)
class Plan:
    """The work of a run."""

    jobs: tuple[Evaluate, ...]
    """The evaluations to make."""
    known: tuple[Result, ...]
    """Results that are known without an evaluation."""
    shard: Shard | None = None
    """The part of the work that this is; None if it is all of it."""
    added: tuple[Evaluate, ...] = ()
    """Evaluations of rivals that the jobs are compared with and that are not among them. They belong to no shard."""


def choose(options: Options, known: Catalog) -> tuple[Choice, ...]:
    """Returns the problems and solutions that the options select. Raises UsageError, also if they select nothing."""
    given = _given(options)
    chosen = _against_one(options, known, given) if given else selection.select(known, options.names)
    if options.levels or options.tags:
        chosen = tuple(choice for choice in chosen if _is_kind(*choice, options))
        if not chosen:
            raise UsageError(f"nothing to evaluate: {selection.no_such_kind(known, options.levels, options.tags)}")
    if options.workloads:
        chosen = _with_workloads(chosen)
    if not chosen:
        raise UsageError(f"nothing to evaluate: no solution files in {options.solutions}; use --solutions for another "
                         f"folder, or '*/{REFERENCE}' to evaluate the references")
    check_replacements([problem for problem, _ in chosen if problem is not None], options)
    return chosen


def _with_workloads(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Returns the choices whose problem declares a set, and those whose problem is missing or unreadable. Raises
    UsageError if no problem declares one."""
    found = tuple((problem, solution) for problem, solution in choices
                  if problem is None or problem.error or problem.workloads)
    if choices and not any(problem is not None and problem.workloads for problem, _ in found):
        paths = {str(problem.path) for problem, _ in choices if problem is not None}
        what = f"{min(paths)} declares" if len(paths) == 1 else "the chosen problems declare"
        raise UsageError(f"--workloads: {what} no WORKLOADS; leave it out, or declare a set")
    return found


def _is_kind(problem: Problem | None, solution: Solution, options: Options) -> bool:
    if problem is None:
        return solution.level in options.levels and not options.tags
    return selection.is_kind(problem, options.levels, options.tags)


def check_replacements(problems: Sequence[Problem], options: Options) -> None:
    """Raises UsageError if no problem has a constant of `--set`, or if one lacks a shape of `--shape`."""
    readable = [problem for problem in problems if not problem.error]
    for name, value in options.constants.items() if readable else ():
        _check_constant(name, value, readable)
    for problem in readable:
        _check_shapes(problem, options)


def slow_sets(options: Options, device: str) -> list[str]:
    """Returns a remark on sets with the sizes of their problems on a device that is too slow for them."""
    if not options.workloads or options.constants or kind_of(device).runs_full_sizes:
        return []
    return ["--workloads: the sizes of a set may be for a GPU, and take hours on the CPU; --set CONSTANT=VALUE "
            "replaces a constant at every workload"]


def not_applied(choices: Sequence[Choice], options: Options) -> list[str]:
    """Returns a remark on each constant of `--set` that some of the chosen problems lack: which ones these are."""
    problems = {problem.name: problem for problem, _ in choices if problem is not None and not problem.error}
    lacking = {name: [each.name for each in problems.values() if name not in each.constants]
               for name in options.constants}
    return [f"--set {name}: not applied to {', '.join(names)} (no such constant)"
            for name, names in lacking.items() if names]


def plan(choices: Sequence[Choice], options: Options, device: str, rivals: Sequence[Solution] = ()) -> Plan:
    """Returns the evaluations of the choices on a device, sorted by problem and shape, or the shard's part of them.

    Where speedups are measured, rivals that the part lacks are added to it.
    """
    jobs, known = [], []
    for problem, solution in choices:
        if problem is None:
            known.append(_without_problem(solution, device))
        elif problem.error:
            known.append(_row(solution, device, Verdict.PROBLEM_ERROR, problem.error))
        elif solution.error:
            backward = (options.backward or problem.backward) or None
            names = shapes(problem, options, device) if options.fuzz is None else (FUZZ,)
            known += [replace(_row(solution, device, Verdict.INVALID, solution.error), backward=backward,
                              shape=shape_name(problem, shape, options), weight=_weight(problem, shape, options))
                      for shape in names]
        elif options.fuzz is not None:
            jobs.append(_at_drawn_sizes(problem, solution, options, options.fuzz, device))
        else:
            jobs += [_job(problem, solution, shape, options) for shape in shapes(problem, options, device)]
    names = rival_names(options.baselines)  # first, because other results wait for them
    jobs.sort(key=lambda job: (
        natural(job.problem_name), "" if job.in_set else job.shape_name, job.solution_name not in names,
        natural(job.solution_name) if job.in_set else natural("")))
    made = Plan(tuple(jobs), tuple(known)) if options.shard is None else _part(jobs, known, *options.shard)
    timed = kind_of(device).times_are_comparable and not options.check and options.sanitize is None
    return _with_rivals(made, rivals, names, options) if timed else made


def rivals_of(options: Options, known: Catalog, chosen: Sequence[Choice]) -> tuple[Solution, ...]:
    """Returns the solutions that those chosen are compared with: the library solutions of their problems, and the
    solutions that `--baseline` names. References alone are not compared with library solutions.

    Raises UsageError if a name of `--baseline` is that of no solution of the chosen problems.
    """
    problems = {problem.name for problem, _ in chosen if problem is not None}
    solved = {solution.problem for _, solution in chosen if solution.name != REFERENCE}
    named = [name for name in rival_names(options.baselines) if f"{SOLUTION_BASELINE}{name}" in options.baselines]
    found = [each for each in known.solutions if (each.problem in problems and each.name in named)
             or (each.problem in problems & solved and each.name == LIBRARY)]
    there = {solution.name for solution in (*found, *(solution for _, solution in chosen))}
    if missing := [name for name in named if name not in there]:
        raise UsageError(f"--baseline {SOLUTION_BASELINE}{missing[0]}: no chosen problem has this solution")
    return tuple(found)


def _with_rivals(made: Plan, rivals: Sequence[Solution], names: Sequence[str], options: Options) -> Plan:
    """Adds the rivals that the jobs lack, and tells each job which sources it is compared with."""
    there = {(job.problem_name, job.shape_name, job.solution_name) for job in made.jobs}
    places = {(job.problem_name, job.shape_name): job for job in made.jobs}.values()
    added = [replace(job, solution_name=rival.name, solution=rival.path.resolve(), alone=rival.alone)
             for job in places for rival in rivals
             if rival.problem == job.problem_name and (job.problem_name, job.shape_name, rival.name) not in there]
    digests: dict[tuple[str, str], dict[str, str | None]] = {}
    for job in (*made.jobs, *added):
        if job.solution_name in names:
            digests.setdefault((job.problem_name, job.shape_name), {})[job.solution_name] = _digest(job, options)
    return replace(made, added=tuple(_compared(job, digests) for job in added),
                   jobs=tuple(_compared(job, digests) for job in made.jobs))


def _compared(job: Evaluate, digests: Mapping[tuple[str, str], Mapping[str, str | None]]) -> Evaluate:
    found = digests.get((job.problem_name, job.shape_name), {})
    return replace(job, rivals=tuple(found[name] for name in sorted(found) if name != job.solution_name))


def _digest(job: Evaluate, options: Options) -> str | None:
    """Returns the digest of what a rival is given; None if it cannot be read."""
    try:
        return digest_of(job, options)
    except OSError:
        return None


def _part(jobs: Sequence[Evaluate], known: Sequence[Result], part: int, parts: int) -> Plan:
    """Returns one of several consecutive parts of the work, of nearly equal size.

    Jobs of a problem mostly stay together, because preparing a problem takes time.
    """
    whole: list[Evaluate | Result] = [*known, *jobs]
    shard = Shard(part, parts, len(whole))
    own = whole[shard.span]
    return Plan(tuple(each for each in own if isinstance(each, Evaluate)),
                tuple(replace(each, shard=shard) for each in own if isinstance(each, Result)), shard)


def shapes(problem: Problem, options: Options, device: str) -> tuple[str, ...]:
    """Returns the shapes of a problem to evaluate: those of the options; all with --check; `full` on a GPU.

    `full` has sizes for a GPU, so on the CPU only the declared shapes are evaluated, or else a derived one. The shapes
    of `--workloads` are the workloads of the set, on every device.
    """
    if options.workloads:
        return tuple(each.name for each in problem.workloads)
    if _replaced(problem, options):
        return (FULL,)
    if options.shapes:
        return options.shapes
    if options.sanitize is not None:
        return (SMALL,) if SMALL in problem.shapes else (FULL,)
    if not kind_of(device).runs_full_sizes:
        return problem.shapes or ((DERIVED,) if problem.derived else (FULL,))
    return (FULL, *problem.shapes) if options.check else (FULL,)


def problem_at(problem: Problem, shape: str, options: Options) -> ProblemAt:
    """Returns a problem at one of its shapes, with the precision and the constants of the options.

    Its calls have a backward if the options or the problem say so.
    """
    path, precision, backward = problem.path.resolve(), options.precision, options.backward or problem.backward
    if shape == DERIVED and problem.derived:
        return ProblemAt(path, FULL, problem.derived[0], precision, problem.derived[1:], problem.confirming,
                         backward=backward)
    if (workload := _workload(problem, shape)) is not None:
        return ProblemAt(path, FULL, {**workload.constants, **_replaced(problem, options)}, precision,
                         backward=backward)
    return ProblemAt(path, shape, _replaced(problem, options), precision, backward=backward)


def shape_name(problem: Problem, shape: str, options: Options) -> str:
    """Returns the name of a shape in results: the constants of `--set`, if the problem has them, after the name of a
    workload.

    It also tells whether the options add a backward to the problem's calls, whose results are others.
    """
    added = WITH_BACKWARD if options.backward and not problem.backward else ""
    kept = [shape] if options.fuzz is not None or _workload(problem, shape) is not None else []
    return (",".join(filter(None, [*kept, named(_replaced(problem, options))])) or shape) + added


def _workload(problem: Problem, shape: str) -> DeclaredWorkload | None:
    """Returns the declared workload of a name, if the problem has it."""
    return next((each for each in problem.workloads if each.name == shape), None)


def _weight(problem: Problem, shape: str, options: Options) -> float | None:
    """Returns the weight of a workload in the mean of its set. None for a shape that is not evaluated as a part of one.
    """
    workload = _workload(problem, shape) if options.workloads else None
    return None if workload is None else workload.weight


def _job(problem: Problem, solution: Solution, shape: str, options: Options) -> Evaluate:
    workload = _workload(problem, shape)
    return Evaluate(
        problem_name=problem.name,
        solution_name=solution.name,
        problem=problem_at(problem, shape, options),
        solution=None if solution.name == REFERENCE else solution.path.resolve(),
        shape_name=shape_name(problem, shape, options),
        level=problem.level,
        alone=solution.alone,
        weight=_weight(problem, shape, options),
        tolerance=None if workload is None else workload.tolerance,
    )


def _at_drawn_sizes(problem: Problem, solution: Solution, options: Options, count: int, device: str) -> Evaluate:
    """Returns the evaluation of a solution at drawn sizes. What is built in advance is built for its usual shape."""
    usual = _job(problem, solution, shapes(problem, replace(options, fuzz=None), device)[0], options)
    fixed = _replaced(problem, options)
    ranges = {name: each for name, each in problem.ranges.items() if name.partition("[")[0] not in fixed}
    return replace(usual, shape_name=shape_name(problem, FUZZ, options), weight=None, tolerance=None,
                   fuzz=Fuzz(count, ranges, problem_at(problem, FULL, options)))


def _replaced(problem: Problem, options: Options) -> dict[str, Any]:
    """Returns the constants of `--set` that the problem has."""
    return {name: value for name, value in options.constants.items() if name in problem.constants}


def _given(options: Options) -> tuple[Solution, ...]:
    """Returns the solutions of `--solution` or `--response`, without their problem."""
    for path in options.solution_files:
        if not path.is_file():
            what = "not a regular file" if path.exists() else "no such file"
            raise UsageError(f"--solution {path}: {what}; name a solution file")
    names = dict(zip(names_of(options.solution_files), options.solution_files, strict=True))
    return tuple(Solution("", name, path) for name, path in names.items()) or options.responses


def names_of(files: Sequence[Path]) -> tuple[str, ...]:
    """Returns the names of solution files: those of the files, with their folders' names before them if they are equal.

    Raises UsageError if these are equal as well.
    """
    names = tuple(path.stem for path in files)
    if len(set(names)) < len(names):
        names = tuple(f"{path.resolve().parent.name}.{path.stem}" for path in files)
    if len(set(names)) < len(names):
        raise UsageError("--solution: two files have the same name in folders of the same name; rename one")
    return names


def _against_one(options: Options, known: Catalog, given: Sequence[Solution]) -> tuple[Choice, ...]:
    problem = selection.find_problem(known, options.names[0])
    return tuple((problem, replace(solution, problem=problem.name)) for solution in given)


def _check_constant(name: str, value: object, problems: Sequence[Problem]) -> None:
    """Raises UsageError if none of the problems has a constant, or if its value can't be in the name of a shape."""
    if str(value).endswith(WITH_BACKWARD):
        raise UsageError(f"--set {name}={value}: results of --backward have such shapes; choose another value")
    if any(name in problem.constants for problem in problems):
        return
    there = ", ".join(dict.fromkeys(each for problem in problems for each in problem.constants)) or "none"
    paths = list(dict.fromkeys(problem.path for problem in problems))
    if len(paths) == 1:
        raise UsageError(f"--set {name}: {paths[0]} has no such constant at module level; it has {there}")
    raise UsageError(f"--set {name}: none of the {len(paths)} chosen problems has such a constant at module level; "
                     f"they have {there}")


def _check_shapes(problem: Problem, options: Options) -> None:
    known = (FULL, *problem.shapes, *((DERIVED,) if problem.derived else ()),
             *(each.name for each in problem.workloads))
    for shape in options.shapes:
        if shape not in known:
            raise UsageError(f"--shape {shape}: {problem.path} declares no such shape; it has {', '.join(known)}")


def _without_problem(solution: Solution, device: str) -> Result:
    hint = "add it to the folder of problems" if solution.alone else "name its folder after its problem"
    reason = f"{solution.path}: there is no problem {solution.problem!r}; {hint}"
    return replace(_row(solution, device, Verdict.INVALID, reason), level=solution.level)


def _row(solution: Solution, device: str, verdict: Verdict, reason: str) -> Result:
    return Result(solution.problem, solution.name, FULL, device, verdict, reason)

