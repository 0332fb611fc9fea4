"""Writes the results of a run: JSON Lines and feedback one by one, a JUnit file and a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from inlinebench.foreign import one_line
from inlinebench.report import drawn_sizes
from inlinebench.report.formats import junit
from inlinebench.report.terminal import samples
from inlinebench.report.terminal.screen import PLAIN, Screen
from inlinebench.report.terminal.summary import render, summary
from inlinebench.report.terminal.table import table
from inlinebench.report.text import grid, significant
from inlinebench.report.workload_sets import HEADERS, LEGEND, answers
from inlinebench.results.jsonl import JsonLines
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Result

LONGEST_NAME = 80


class Outputs:
    """A context manager that collects the results of a run. It writes the JUnit file on exit, also after an exception.

    Entering raises UsageError if a file cannot be written.
    """

    def __init__(
        self, out: Path | None, junit_path: Path | None, *, verbose: bool = False, kernels: bool = False
    ) -> None:
        self.results: list[Result] = []
        self._out, self._junit, self._verbose, self._kernels = out, junit_path, verbose, kernels
        self._lines: JsonLines | None = None
        self._told = 0
        self._stack = ExitStack()

    def __enter__(self) -> Outputs:
        if self._junit is not None:
            junit.check_place(self._junit)
        if self._out is not None:
            self._lines = self._stack.enter_context(JsonLines(self._out))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if self._junit is not None and (kind is None or self.results):
            junit.write(self.results, self._junit)

    def add(self, result: Result) -> None:
        """Adds a result, and writes its line at once."""
        self.results.append(result)
        if self._lines is not None:
            self._lines.write(result)

    def recall(self, result: Result) -> None:
        """Adds a result that an earlier run wrote to the file already."""
        self.results.append(result)

    def report(self, screen: Screen) -> str:
        """Returns the text for the terminal at the end of the run."""
        return report(self.results, screen, verbose=self._verbose, kernels=self._kernels)

    def feedback(self, screen: Screen, *, ended: bool = False) -> str:
        """Returns the feedback on results that it was not asked for before, "" if there are none.

        At the end of a run it includes library solutions if there was nothing else.
        """
        from inlinebench.report.terminal.feedback import feedback

        left = [each for each in self.results if each.solution != LIBRARY][self._told:]
        if ended and not left and not self._told:
            left = self.results
        texts = [feedback(each, screen.width) for each in left]
        if ended:
            texts += filter(None, [sets(self.results), drawn_sizes.render(self.results)])
        separate = "\n" if self._told and texts else ""
        self._told += len(left)
        return separate + "\n\n".join(texts)


def report(results: Sequence[Result], screen: Screen = PLAIN, *, verbose: bool = False, kernels: bool = False) -> str:
    """Returns the table, the failures, the sets of workloads, the drawn sizes, the kernels (with `kernels`), and the
    summaries of solutions and of samples."""
    named = [each for each in results if not samples.is_sample(each)]
    parts = [table(results, verbose, screen), sets(results), drawn_sizes.render(results),
             kernel_tables(results) if kernels else "",
             render(summary(named), screen.width), samples.render(samples.summary(results))]
    return "\n\n".join(filter(None, parts))


def sets(results: Sequence[Result]) -> str:
    """Returns a table of the answers for sets of workloads, with a legend; "" without sets."""
    rows = [each.cells for each in answers(results)]
    return f"{grid(HEADERS, rows, ['left'] * len(HEADERS))}\n{LEGEND}" if rows else ""


def kernel_tables(results: Sequence[Result]) -> str:
    """Returns a table of kernels for each result that has them: name, origin, time and share of the GPU's time."""
    return "\n\n".join(_kernel_table(result) for result in results if result.kernels is not None)


def _kernel_table(result: Result) -> str:
    assert result.kernels is not None
    heading = one_line(f"{result.problem}/{result.solution} ({result.shape}), one call:")
    rows = [[one_line(each.name, LONGEST_NAME), one_line(each.origin), significant(each.ms), f"{each.share:.1%}"]
            for each in result.kernels.top]
    return f"{heading}\n{grid(['kernel', 'origin', 'ms', 'share'], rows, ['left', 'left', 'decimal', 'right'])}"
