"""The command line of `run`, `check`, `build` and `list`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inlinebench.catalog.traces.layout import PROBLEM_SUFFIXES
from inlinebench.cli.exits import say
from inlinebench.cli.parsing import pyproject
from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.options import OLD_NAMES, OPTIONS, Options, rules
from inlinebench.options.declaration import Option
from inlinebench.options.judge import FUZZED_CALLS, FUZZED_WARMUP, SANITIZED_CALLS


@dataclass(frozen=True)
class Command:
    """One of the commands that take problems and solutions."""

    name: str
    description: str
    groups: Mapping[str, tuple[str, ...]]
    """The titles of its help in order, with the groups of options below each."""
    flag: str | None = None
    """The option of `run` that does the same."""
    examples: str = ""
    switches: Mapping[str, str] = field(default_factory=dict)
    """Further switches, which are not options of a run, with their help texts."""


_EVALUATION = {"what to evaluate": ("folders", "files"), "inputs": ("shapes", "inputs"),
               "devices": ("device", "devices"), "correctness": ("correctness",)}
_LIMITS = {"integrity and limits": ("integrity", "time limit", "time limit of problems", "memory")}
_OUTPUTS = {"builds": ("builds",), "results": ("results", "output")}
RUN = Command(
    "run", "Checks CUDA kernels against their PyTorch references and times both.",
    {**_EVALUATION, "times": ("times",), **_LIMITS, **_OUTPUTS, "other modes": ("modes",)},
    examples="""\
                                every problem with every solution, as a table
matmul_diag/naive               one solution
row_sum --solution mine.py      a solution file anywhere
--out r.jsonl --resume          continue an interrupted run
--check --junit out.xml         a gate in CI: correctness only, every shape, exit status""")
CHECK = Command(
    "check", "Checks correctness only, at every shape that a problem declares.",
    {**_EVALUATION, **_LIMITS, **_OUTPUTS}, "check",
    examples="""\
                                every problem with every solution
matmul_diag                     every solution of one problem
matmul_diag/naive --shape odd   one solution at one shape
row_sum --solution mine.py --feedback
--strict --junit out.xml        a gate in CI""")
BUILD = Command(
    "build", "Builds solutions without evaluating them. With --arch, no GPU is needed.",
    {"what to build": ("folders", "files"), "shapes": ("shapes",), "device": ("device",),
     "limits": ("time limit of problems",), "builds": ("builds",), "build results": ("output",)}, "build_only",
    examples="""\
                                everything, for the GPU of this machine
--arch 90                       everything, for compute capability 9.0
'matmul_*/fast' --arch 80,90a   some solutions, for two architectures
--device cpu                    for evaluations on the CPU
--arch 90 --cache /shared/c     into another cache""")
LIST = Command(
    "list", "Lists problems with their shapes and solutions.", {"folders": ("folders",)}, "list_only",
    examples="""\
                                all problems
matmul_diag                     one problem
'matmul_*'                      some problems
--level 1 --tag reduction       by level and tag
--problems DIR                  problems of another folder""")
AUDIT = Command(
    "audit", "Finds flaws that make problems bad benchmarks: trivial answers that pass, and work that has no effect.",
    {"folders": ("folders",), "shapes": ("shapes",), "device": ("device",), "audit": ("time limit",)}, "check",
    examples="""\
                                every problem, at every shape that it declares
matmul_diag                     one problem
path/to/problem.py              a problem file
--problems KernelBench --level 1 --device cpu
--shape small --json            one line of JSON for each problem""",
    switches={"--json": "print a line of JSON for each problem and shape"})
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
) -> dict[str, Any]:
    """Returns the values of options that are given, or follow from the environment or others. Raises as `parse` does.
    """
    every, parser = parser_of(RUN, prog), parser_of(command, prog)
    path, table = pyproject.defaults(_here())
    table = {_present(name, place=f"{path}: "): value for name, value in table.items()}
    typed = [_present(text, "--") for text in arguments]
    given = parser.parse_args(typed)
    given = parser.parse_args([*pyproject.arguments(path, table, every, parser, given), *typed])
    values = vars(given)
    for name, each in OPTIONS.items():
        if name in values and each.kind.collect is not None:
            values[name] = each.kind.collect(values[name])
    if command.flag is not None:
        values[command.flag] = True
    _fill_in(values, environment)
    return values


def options_of(values: Mapping[str, Any]) -> Options:
    """Returns the options with these values. Raises UsageError if they are unusable or contradict each other."""
    options = Options(**values)
    rules.check(options, lambda field, value: f"{OPTIONS[field].flag} {_written(field, value)}")
    return rules.settled(options)


def _present(text: str, dashes: str = "", place: str = "") -> str:
    """Returns an argument or a key with the present name of an option that was renamed, and says so."""
    name, equals, value = text.partition("=")
    for old, new in OLD_NAMES.items():
        if name == dashes + old.replace("_", "-"):
            present = OPTIONS[new].flag.removeprefix("--")
            say(f"{place}{name} is now called {dashes}{present}; the old name works for one more release")
            return f"{dashes}{present}{equals}{value}"
    return text


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder no longer exists; change to another one") from error


def _written(field: str, value: object) -> str:
    """A value as on a command line."""
    between = "/" if field == "shard" else ","
    return between.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _fill_in(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Sets what follows from other options and from the environment."""
    if values.get("sanitize"):
        values.setdefault("min_calls", SANITIZED_CALLS)
    if values.get("fuzz"):
        values.setdefault("min_calls", FUZZED_CALLS)
        values.setdefault("warmup", FUZZED_WARMUP)
        values["check"] = True
    for name, each in OPTIONS.items():
        if each.variable and name not in values:
            values[name] = each.default_in(environment)
    values["problems"], values["solutions"] = _folders(
        values.get("problems"), values.get("solutions"), values.get("names", ()))


def _folders(problems: Path | None, solutions: Path | None, names: Sequence[str]) -> tuple[Path, Path]:
    """The folders of problems and solutions.

    Problems: as given, else `./problems`, else those of this checkout. Solutions: as given, else `solutions` beside the
    folder of a problem that is named by its path, else beside the given problems, else `./solutions`, else those of
    this checkout. Raises UsageError if problems are named by paths in several folders and `--solutions` is not given.
    """
    files = {path.resolve().parent for path in map(Path, names) if path.suffix in PROBLEM_SUFFIXES and path.is_file()}
    beside_files = [folder.parent / "solutions" for folder in sorted(files)]
    found = [folder for folder in beside_files if folder.is_dir()]
    if solutions is None and len(found) > 1:
        raise UsageError("the problems are in several folders with solutions next to them: choose one with "
                         "--solutions DIR")
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


def parser_of(command: Command, prog: str) -> Parser:
    """Returns the parser of a command. It sets only what is given."""
    elsewhere = () if command is RUN else parser_of(RUN, prog).options
    parser = Parser(prog, command.description, usage=f"{prog} [options] [NAME ...]", examples=command.examples,
                    elsewhere=elsewhere)
    parser.add_argument("names", nargs="*", metavar="NAME", default=argparse.SUPPRESS, help=OPTIONS["names"].text)
    for title, groups in command.groups.items():
        part = parser.add_argument_group(title)
        for group in groups:
            for option in OPTIONS.values():
                if option.group == group:
                    _add(part, option)
    for flag, text in command.switches.items():
        part.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=text)
    return parser


def _add(part: argparse._ArgumentGroup, option: Option) -> None:
    kind = option.kind
    facts: dict[str, Any] = {"dest": option.name, "default": argparse.SUPPRESS, "help": option.help.replace("%", "%%")}
    if kind.const is not None and kind.metavar:
        part.add_argument(*option.flags, nargs="?", const=kind.const, type=kind.parse, metavar=kind.metavar, **facts)
    elif kind.const is not None:
        part.add_argument(*option.flags, action="store_const", const=kind.const, **facts)
    else:
        part.add_argument(*option.flags, action="append" if kind.collect else "store", type=kind.parse,
                          metavar=kind.metavar, **facts)
