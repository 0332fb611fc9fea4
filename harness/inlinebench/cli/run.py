"""`inlinebench run`, which is also `python run_eval.py`: the story of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench import catalog, options
from inlinebench.catalog.traces.layout import PROBLEM_SUFFIXES
from inlinebench.cli import arguments as command_line
from inlinebench.cli.arguments import RUN, Command
from inlinebench.cli.exits import ended, say, show
from inlinebench.cli.responses import with_responses
from inlinebench.errors import CannotWrite, NoDevice, UsageError
from inlinebench.options import rules
from inlinebench.results.library import LIBRARY

if TYPE_CHECKING:
    from inlinebench.report.terminal.outputs import Outputs
    from inlinebench.report.terminal.screen import Screen
    from inlinebench.scheduler.judge_process import Scratch
    from inlinebench.scheduler.observer import Observer
    from inlinebench.scheduler.session import Executor


def main(arguments: Sequence[str]) -> int:
    """Runs `inlinebench run` and returns its exit status."""
    return run(arguments, RUN, "inlinebench run")


def run(arguments: Sequence[str], command: Command, prog: str) -> int:
    """Runs a command under a program's name and returns its exit status."""
    return ended(prog, lambda: _run(arguments, command, prog))


def _run(arguments: Sequence[str], command: Command, prog: str) -> int:
    wanted = command_line.parse(arguments, command=command, prog=prog)
    known = catalog.read(wanted.problems, wanted.solutions)
    if wanted.list_only:
        return show_list(known, wanted)
    _say_folders(wanted)
    _check_hidden(wanted, known)
    with with_responses(wanted) as wanted:
        return build(wanted, known) if wanted.build_only else start(wanted, known)


def _check_hidden(wanted: options.Options, known: catalog.Catalog) -> None:
    """Raises UsageError for a bundled problem that is not in the folder of problems, such as `./problems`."""
    bundled = options.HOME / "problems"
    for name in (name.partition("/")[0] for name in wanted.names):
        if name not in known.problems and (bundled / f"{name}.py").is_file():
            raise UsageError(f"no problem {name!r} in {wanted.problems}, which hides the bundled problems; add "
                             f"--problems {bundled}")


def show_list(known: catalog.Catalog, wanted: options.Options) -> int:
    """Prints the problems and solutions that the options select."""
    from inlinebench.report.terminal.listing import listing

    show(listing(known, wanted))
    return 0


def build(wanted: options.Options, known: catalog.Catalog) -> int:
    """Builds the chosen solutions and prints a table of the builds."""
    from inlinebench.report.terminal.builds import exit_status, table
    from inlinebench.report.terminal.progress import Progress
    from inlinebench.scheduler.build_only import BuildOnly
    from inlinebench.scheduler.plan import choose

    choices = choose(wanted, known)
    with Progress(wanted.quiet) as progress, BuildOnly(wanted, choices, progress) as builder:
        rows = list(builder.builds())
    show(table(rows, builder.notes()))
    return exit_status(rows, wanted.strict)


def start(wanted: options.Options, known: catalog.Catalog) -> int:
    """Starts a judge, which takes longest, then evaluates."""
    from inlinebench.scheduler.judge_process import head_start

    with head_start(wanted) as scratch:
        return evaluate(wanted, known, scratch)


def evaluate(wanted: options.Options, known: catalog.Catalog, scratch: Scratch | None) -> int:
    """Evaluates the chosen solutions and prints a report, also if the run is interrupted or cannot go on."""
    from inlinebench.cli import github
    from inlinebench.cli.last_failed import only_failed, remember
    from inlinebench.report.terminal.head_to_head import head_to_head
    from inlinebench.report.terminal.outputs import Outputs
    from inlinebench.report.terminal.progress import Progress
    from inlinebench.report.terminal.screen import Screen
    from inlinebench.scheduler.plan import choose, names_of, not_applied, rivals_of, slow_sets
    from inlinebench.scheduler.session import Session, exit_status

    chosen = choose(wanted, known)
    others = rivals_of(wanted, known, chosen)
    choices = only_failed(chosen, wanted) if wanted.last_failed else chosen
    screen = Screen.of(sys.stdout)
    with Outputs(wanted.out, wanted.junit, verbose=wanted.verbose, kernels=wanted.profile is not None) as outputs:
        try:
            with (
                Progress(wanted.quiet) as progress,
                Session(wanted, choices, progress, executor(wanted, progress, scratch), others) as session,
            ):
                if idle := rules.without_effect(wanted, session.device):
                    progress.line(f"{', '.join(idle)}: no effect on the CPU, where no speedup is measured")
                for remark in (*not_applied(choices, wanted), *slow_sets(wanted, session.device)):
                    progress.line(remark)
                for result in session.recalled:
                    outputs.recall(result)
                for result in session.results():
                    outputs.add(result)
                    progress.finished(result)
                    if wanted.feedback and (text := outputs.feedback(screen)):
                        with progress.hidden():
                            show(text)
                    if wanted.fail_fast and result.solution != LIBRARY and exit_status([result], wanted.strict):
                        progress.line("stopped after the first failure (--fail-fast)")
                        break
        except (KeyboardInterrupt, CannotWrite, NoDevice):
            if outputs.results:
                _show_all(outputs, wanted, screen)
            raise
        finally:
            remember(outputs.results, wanted)
            files = (*others, *(solution for _, solution in choices))
            github.report(outputs.results, {str(solution): solution.path for solution in files})
        _show_all(outputs, wanted, screen)
        if len(wanted.solution_files) > 1:
            show("\n" + head_to_head(outputs.results, names_of(wanted.solution_files)))
    return exit_status(outputs.results, wanted.strict)


def _show_all(outputs: Outputs, wanted: options.Options, screen: Screen) -> None:
    """Shows the table, or the feedback that was not shown yet."""
    text = outputs.feedback(screen, ended=True) if wanted.feedback else outputs.report(screen)
    if text:
        show(text)


def executor(wanted: options.Options, progress: Observer, scratch: Scratch | None) -> Executor:
    """The executor that the options name: this machine, or a Ray cluster."""
    if wanted.executor == options.RAY:
        from inlinebench.ray.executor import RayExecutor

        return RayExecutor(wanted, progress)
    from inlinebench.scheduler.executor import LocalExecutor

    return LocalExecutor(wanted, progress, scratch)


def _say_folders(wanted: options.Options) -> None:
    """Says which folders are used, except in the checkout's own, where that is plain."""
    if not wanted.quiet and Path.cwd() != options.ROOT:
        files = wanted.names and all(Path(name).suffix in PROBLEM_SUFFIXES for name in wanted.names)
        problems = "as named" if files else os.path.realpath(wanted.problems)
        say(f"problems: {problems}; solutions: {os.path.realpath(wanted.solutions)}")
