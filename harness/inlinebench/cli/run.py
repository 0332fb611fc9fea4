"""Evaluates CUDA kernels against their PyTorch references: the story of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inlinebench.cli import arguments as command_line
from inlinebench.cli.responses import answered
from inlinebench.records import catalog, options
from inlinebench.records.errors import NoDevice, NoSandbox, UsageError

if TYPE_CHECKING:
    from inlinebench.report.terminal.progress import Progress
    from inlinebench.scheduler.judge_process import Scratch
    from inlinebench.scheduler.session import Executor


def main(arguments: Sequence[str]) -> int:
    """Runs what the command line asks for; gives the exit status."""
    try:
        wanted = command_line.parse(arguments)
        known = catalog.read(wanted.problems, wanted.solutions)
        if wanted.list_only:
            return show_list(known)
        with answered(wanted) as wanted:
            return build(wanted, known) if wanted.build_only else begin(wanted, known)
    except UsageError as error:
        complain(str(error))
        return 2
    except (NoDevice, NoSandbox) as error:
        complain(str(error))
        return 3
    except KeyboardInterrupt:
        complain("interrupted; results written so far are whole")
        return 130
    except BrokenPipeError:  # nobody reads what is going on: nobody waits for the rest
        _forget_readers()
        return 1


def show_list(known: catalog.Catalog) -> int:
    """Prints what there is to evaluate."""
    from inlinebench.cli.list import listing

    show(listing(known))
    return 0


def build(wanted: options.Options, known: catalog.Catalog) -> int:
    """Chooses, builds, says what came of it."""
    from inlinebench.report.terminal.progress import Progress
    from inlinebench.scheduler.build_only import BuildOnly
    from inlinebench.scheduler.build_report import exit_status, table
    from inlinebench.scheduler.plan import choose

    choices = choose(wanted, known)
    with Progress(wanted.quiet) as progress, BuildOnly(wanted, choices, progress) as builder:
        rows = list(builder.builds())
    show(table(rows, builder.notes()))
    return exit_status(rows, wanted.strict)


def begin(wanted: options.Options, known: catalog.Catalog) -> int:
    """Has a judge start, which takes longest, and goes on."""
    from inlinebench.scheduler.judge_process import head_start

    with head_start(wanted) as scratch:
        return evaluate(wanted, known, scratch)


def evaluate(wanted: options.Options, known: catalog.Catalog, scratch: Scratch | None) -> int:
    """Chooses, evaluates, reports."""
    from inlinebench.report.terminal.outputs import Outputs
    from inlinebench.report.terminal.progress import Progress
    from inlinebench.scheduler.plan import choose
    from inlinebench.scheduler.session import Session, exit_status

    choices = choose(wanted, known)
    with (
        Outputs(wanted.out, wanted.junit, verbose=wanted.verbose, kernels=wanted.profile is not None) as outputs,
        Progress(wanted.quiet) as progress,
        Session(wanted, choices, progress, executor(wanted, progress, scratch)) as session,
    ):
        for result in session.recalled:
            outputs.recall(result)
        for result in session.results():
            outputs.add(result)
            progress.finished(result)
    show(outputs.feedback() if wanted.feedback else outputs.report())
    return exit_status(outputs.results, wanted.strict)


def executor(wanted: options.Options, progress: Progress, scratch: Scratch | None) -> Executor:
    """What evaluates: the nodes of a Ray cluster with `--executor ray`, else this machine."""
    if wanted.executor == options.RAY:
        from inlinebench.ray.executor import RayExecutor

        return RayExecutor(wanted, progress)
    from inlinebench.scheduler.executor import LocalExecutor

    return LocalExecutor(wanted, progress, scratch)


def show(text: str) -> None:
    """Prints on stdout. That a reader has seen enough (`| head`) is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _forget_readers()


def complain(message: str) -> None:
    """One line for a person, on stderr."""
    print(f"run_eval.py: {message}", file=sys.stderr)


def _forget_readers() -> None:
    """Sends what is still to be written nowhere, so that Python doesn't complain at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
