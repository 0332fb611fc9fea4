"""How a command ends: its exit status, one line on stderr for an error, and no complaint about a closed pipe."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

from inlinebench.errors import CannotWrite, NoDevice, NoSandbox, UsageError
from inlinebench.foreign import message

OK, NOT_PASSED, UNUSABLE, NO_DEVICE = 0, 1, 2, 3
SIGNALLED = 128
"""Added to the number of the signal that ended a command, as shells do."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command as Ctrl-C does: a CI system or a cluster sends the first, a closed terminal the second."""

FAULTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "allow more open files (ulimit -n)"),
    **dict.fromkeys((errno.ENOMEM, errno.EAGAIN), "free some memory, or allow more processes (ulimit -u)"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "name a place that you can write to"),
    errno.EIO: "check the disk",
}
"""Faults of the machine, and what to do about them. Other errors of the operating system are bugs of the harness."""


class Terminated(KeyboardInterrupt):
    """A signal asks the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ended(prog: str, command: Callable[[], int]) -> int:
    """Runs a command and returns its exit status.

    0: everything passed; 1: something did not; 2: unusable arguments or files; 3: no device or no sandbox; 130, 143 and
    129: interrupted, terminated and hung up. An error is one line on stderr, after the name of the program.
    """
    _prepare_streams()
    try:
        with _ending_signals():
            return command()
    except (UsageError, CannotWrite) as error:
        return _complain(prog, str(error), UNUSABLE)
    except (NoDevice, NoSandbox) as error:
        return _complain(prog, str(error), NO_DEVICE)
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Terminated) else signal.SIGINT
        what = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        return _complain(prog, f"{what}; the results written so far are complete", SIGNALLED + number)
    except BrokenPipeError:  # the reader is gone, so nobody waits for the rest
        for stream in (sys.stdout, sys.stderr):
            _discard(stream)
        return NOT_PASSED
    except OSError as error:
        if error.errno not in FAULTS:
            raise
        where = error.filename or "an output or a process"
        return _complain(prog, f"{where}: {error.strerror}; {FAULTS[error.errno]}", UNUSABLE)


@contextmanager
def _ending_signals() -> Iterator[None]:
    """Raises Terminated for signals that end a command, unless they are ignored (`nohup`) or another thread runs it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise Terminated(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    handled = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def show(text: str) -> None:
    """Prints on stdout. A closed pipe (`| head`) is not an error. Raises CannotWrite if the text cannot be written."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise CannotWrite(f"cannot write to standard output ({error.strerror})") from error


def say(text: str) -> None:
    """Prints a message on stderr. Its first line begins with the harness's own words; the others are quoted."""
    print(message(text), file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """Opens standard streams that are closed, and lets the others show names that their encoding lacks."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest descriptor that is free, which is this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(prog: str, what: str, status: int) -> int:
    try:
        say(f"{prog}: {what}")
    except OSError:  # nobody can be told
        _discard(sys.stderr)
    return status


def _discard(stream: TextIO) -> None:
    """Discards what is still to be written, so that Python does not complain at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
