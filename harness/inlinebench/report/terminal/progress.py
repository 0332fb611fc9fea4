"""Shows progress on stderr: a bar on a terminal, plain lines elsewhere, nothing if quiet.

Where there is no bar, a line about the current activity follows each long silence.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, TextIO, final

from inlinebench.foreign import message, one_line
from inlinebench.report.text import significant
from inlinebench.results.result import Result

_BAR = "[{n_fmt}/{total_fmt}] {bar:20} {desc}"
_CLEAR = "\r\x1b[K"
"""Erases a line of a terminal."""
STARTING = "starting PyTorch"
BETWEEN = "waiting for the next build"
"""What goes on after an evaluation until another one begins."""
SILENCE_S = 15.0
"""Seconds without a line after which one says what goes on."""


@final
class Progress:
    """The progress display of a run. A context manager, which removes the bar on exit.

    It writes to `stream`, by default the current `sys.stderr`. Thread-safe.
    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None, silence: float = SILENCE_S) -> None:
        self._quiet, self._silence = quiet, silence
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = not quiet and self._stream.isatty()
        self._bar: Any = None
        self._total = 0
        self._done = 0
        self._lock = threading.RLock()
        self._activity, self._since = STARTING, time.monotonic()
        self._last = self._since
        """When the last line was printed."""
        self._closed = threading.Event()

    def __enter__(self) -> Progress:
        if self._terminal:
            self._stream.write(STARTING)
            self._stream.flush()
        elif not self._quiet:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        with self._lock:
            self._close()

    def start(self, total: int) -> None:
        """Resets the count to 0 of `total` results."""
        with self._lock:
            self._close()
            self._total, self._done = total, 0
            if self._terminal:
                self._bar = _bar(total, self._stream)

    def phase(self, text: str) -> None:
        """Shows that a part of the run begins (`building 3 solutions`), on the bar or as a line."""
        self.update(text)
        if self._bar is None:
            self.line(text)

    def update(self, text: str) -> None:
        """Shows the current activity on the bar; elsewhere only after a long silence."""
        with self._lock:
            activity = one_line(text)
            if activity != self._activity:
                self._activity, self._since = activity, time.monotonic()
            if self._bar is not None:
                self._bar.set_description_str(activity)

    def finished(self, result: Result) -> None:
        """Counts a result: advances the bar, or prints a line with the verdict."""
        with self._lock:
            self._done += 1
            if self._bar is not None:
                self._bar.update()
            else:
                self.line(f"[{self._done}/{self._total}] {_brief(result)}")
            if _name(result) in self._activity:
                self.update(BETWEEN)

    def line(self, text: str) -> None:
        """Prints a message, above the bar if there is one. Its lines stay together. The first one begins with the
        harness's own words; the others are quoted.
        """
        if self._quiet:
            return
        text = message(text)
        with self._lock:
            self._last = time.monotonic()
            if self._bar is not None:
                self._bar.write(text, file=self._stream)
            else:
                self._stream.write(f"{_CLEAR if self._terminal else ''}{text}\n")
                self._stream.flush()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Removes the bar while something else prints on the terminal."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            elif self._terminal:
                self._stream.write(_CLEAR)
                self._stream.flush()
            yield
            self._last = time.monotonic()
            if self._bar is not None:
                self._bar.refresh()

    def _watch(self) -> None:
        """Prints a line after each long silence, until the display is closed."""
        while not self._closed.wait(max(0.0, self._last + self._silence - time.monotonic())):
            with self._lock:
                now = time.monotonic()
                if now >= self._last + self._silence and not self._closed.is_set():
                    with suppress(OSError):  # the reader is gone, which the main thread notices
                        self.line(f"{self._activity} (for {now - self._since:.0f} s)")

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        elif self._terminal:
            self._stream.write(_CLEAR)
            self._stream.flush()


def _bar(total: int, stream: TextIO) -> Any:
    from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]

    # By default tqdm creates a multiprocessing lock, which starts Python's resource tracker, and a monitor thread. A
    # program that starts other processes should have neither.
    tqdm.set_lock(threading.RLock())
    tqdm.monitor_interval = 0
    return tqdm(total=total, file=stream, bar_format=_BAR, dynamic_ncols=True, leave=False, mininterval=0, miniters=1)


def _brief(result: Result) -> str:
    """`matmul_diag/naive full: passed, 26.8x`."""
    text = f"{_name(result)}: {result.verdict}"
    if result.timing is not None and result.times_are_comparable:
        text += f", {significant(result.timing.speedup.median)}x"
    return text


def _name(result: Result) -> str:
    """`matmul_diag/naive full`."""
    problem, solution, shape = map(one_line, (result.problem, result.solution, result.shape))
    return f"{problem}/{solution} {shape}"
