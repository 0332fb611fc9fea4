"""Shows progress on stderr: a bar on a terminal, plain lines elsewhere, nothing if quiet."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any, TextIO, final

from inlinebench.records.result import Result
from inlinebench.report.text import one_line, significant

_BAR = "[{n_fmt}/{total_fmt}] {bar:20} {desc}"


@final
class Progress:
    """The progress display of a run. A context manager, which removes the bar on exit.

    It writes to `stream`, by default the current `sys.stderr`. Not thread-safe.
    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._stream = stream if stream is not None else sys.stderr
        self._bar: Any = None
        self._total = 0
        self._done = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def start(self, total: int) -> None:
        """Resets the count to 0 of `total` results."""
        self._close()
        self._total, self._done = total, 0
        if not self._quiet and self._stream.isatty():
            self._bar = _bar(total, self._stream)

    def phase(self, text: str) -> None:
        """Shows that a part of the run begins (`building 3 solutions`), on the bar or as a line."""
        if self._bar is not None:
            self.update(text)
        else:
            self.line(text)

    def update(self, text: str) -> None:
        """Shows the current activity, on the bar only."""
        if self._bar is not None:
            self._bar.set_description_str(one_line(text))

    def finished(self, result: Result) -> None:
        """Counts a result: advances the bar, or prints a line with the verdict."""
        self._done += 1
        if self._bar is not None:
            self._bar.update()
        else:
            self.line(f"[{self._done}/{self._total}] {_brief(result)}")

    def line(self, text: str) -> None:
        """Prints a message, above the bar if there is one. The lines of a message stay together."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _bar(total: int, stream: TextIO) -> Any:
    from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]

    # By default tqdm creates a multiprocessing lock, which starts Python's resource tracker, and a monitor thread. A
    # program that starts other processes should have neither.
    tqdm.set_lock(threading.RLock())
    tqdm.monitor_interval = 0
    return tqdm(total=total, file=stream, bar_format=_BAR, dynamic_ncols=True, leave=False, mininterval=0, miniters=1)


def _brief(result: Result) -> str:
    """`matmul_diag/naive full: passed, 26.8x`."""
    problem, solution, shape = map(one_line, (result.problem, result.solution, result.shape))
    text = f"{problem}/{solution} {shape}: {result.verdict}"
    if result.timing is not None and result.device != "cpu":
        text += f", {significant(result.timing.speedup.median)}x"
    return text
