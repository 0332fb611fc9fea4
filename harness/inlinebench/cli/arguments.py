"""The command line of `run`, `check`, `build` and `list`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench.cli.parsing import pyproject, types
from inlinebench.cli.parsing.groups import GROUPS
from inlinebench.cli.parsing.parser import Parser
from inlinebench.records import option_rules
from inlinebench.records.errors import UsageError
from inlinebench.records.options import CALLS, PROFILES, SANITIZED_CALLS, Options, at_home, default_cache_limit


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
                                every problem with every solution, as a table
matmul_diag/naive               one solution
row_sum --solution mine.py      a solution file anywhere
--out r.jsonl --resume          continue an interrupted run
--check --junit out.xml         a gate in CI: correctness only, every shape, exit status""")
CHECK = Command(
    "check", "Checks correctness only, at every shape that a problem declares.",
    (*_EVALUATION, "integrity and limits", "builds", "results"), "check",
    examples="""\
                                every problem with every solution
matmul_diag                     every solution of one problem
matmul_diag/naive --shape odd   one solution at one shape
row_sum --solution mine.py --feedback
--strict --junit out.xml        a gate in CI""")
BUILD = Command(
    "build", "Builds solutions and evaluates nothing. With --arch this needs no GPU.",
    ("what to build", "shapes", "device", "limits", "builds", "build results"), "build_only",
    examples="""\
                                everything, for the GPU of this machine
--arch 90                       everything, for compute capability 9.0
'matmul_*/fast' --arch 80,90a   some solutions, for two architectures
--device cpu                    for evaluations on the CPU
--arch 90 --cache /shared/c     into another cache""")
LIST = Command(
    "list", "Lists problems with their shapes and solutions.", ("folders",), "list_only",
    examples="""\
                                all problems
matmul_diag                     one problem
'matmul_*'                      some problems
--level 1 --tag reduction       by level and tag
--problems DIR                  those of another folder""")
AUDIT = Command(
    "audit", "Says what makes problems bad benchmarks: answers that need no work, and work that makes no difference.",
    ("folders", "shapes", "device", "audit"), "check",
    examples="""\
                                every problem, at every shape that it declares
matmul_diag                     one problem
path/to/problem.py              a problem file
--problems KernelBench --level 1 --device cpu
--shape small --json            one line of JSON for each problem""")
EVALUATING = {command.name: command for command in (RUN, CHECK, BUILD, LIST)}
"""The commands of this module, by name."""


def parse(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ, command: Command = RUN,
    prog: str = "run_eval.py",
) -> Options:
    """The options that a command line asks for. `prog` is the name of the program in its help.

    Raises UsageError for options that the command does not have, that have unusable values or that contradict each
    other. Raises SystemExit for `--help` and `--version`.
    """
    return options_of(parsed(arguments, environment, command, prog))


def parsed(
    arguments: Sequence[str], environment: Mapping[str, str], command: Command, prog: str
) -> argparse.Namespace:
    """Returns the values of all options of a command and of `run`. Raises as `parse` does."""
    every, parser = parser_of(RUN, environment, prog), parser_of(command, environment, prog)
    given = every.parse_args([])  # the defaults of options that the command does not have
    if command.flag is not None:
        setattr(given, command.flag, True)
    path, table = pyproject.defaults(_here())
    parser.parse_args([*pyproject.arguments(path, table, every, parser, parser.only_given(arguments)), *arguments],
                      given)
    _fill_in(given, environment)
    return given


def options_of(given: argparse.Namespace) -> Options:
    """Returns the options with these values. Raises UsageError if they are unusable or contradict each other."""
    options = Options(**vars(given))
    option_rules.check(options, lambda field, value: f"{option_rules.flag(field)} {_written(field, value)}")
    return option_rules.settled(options)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder does not exist any more; change to another one") from error


def _written(field: str, value: object) -> str:
    """A value as on a command line."""
    between = "/" if field == "shard" else ","
    return between.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _fill_in(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Sets what follows from other options."""
    given.profile = PROFILES if given.profile else None
    if given.calls is None:
        given.calls = SANITIZED_CALLS if given.sanitize else CALLS
    given.constants = dict(types.constant(text) for text in given.constants)
    for name in ("names", "solution_files", "shapes", "levels", "tags", "baselines", "architectures"):
        setattr(given, name, tuple(getattr(given, name)))
    given.cache = at_home(given.cache)
    given.problems, given.solutions = _folders(given.problems, given.solutions, given.names)
    if given.cache_limit is None:
        given.cache_limit = default_cache_limit(environment)


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


def parser_of(command: Command, environment: Mapping[str, str], prog: str) -> Parser:
    """Returns the parser of a command. `environment` has the defaults of some options."""
    elsewhere = () if command is RUN else parser_of(RUN, environment, prog).options
    parser = Parser(prog, command.description, usage=f"{prog} [options] [NAME ...]", examples=command.examples,
                    elsewhere=elsewhere)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=[], help="a problem, problem/solution, a glob of either, a "
        "problem file, or the number of a problem such as 12_Matmul, or a range of numbers; PROBLEM/@reference "
        "evaluates the reference itself (default: everything)")
    for title in command.groups:
        GROUPS[title](parser.add_argument_group(title).add_argument, environment)
    return parser
