"""A parser whose errors are one line that suggests the right option."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection
from typing import NoReturn

from inlinebench.errors import UsageError
from inlinebench.version import __version__

_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError for a wrong command line, and whose help ends with examples.

    Each line of `examples` is the arguments of a command, two spaces or more, and what it does. `elsewhere` are the
    options that `inlinebench run` has.
    """

    def __init__(
        self, prog: str, description: str, *, usage: str | None = None, examples: str = "",
        elsewhere: Collection[str] = (), end: str = "",
    ) -> None:
        typed = f"python {prog}" if prog.endswith(".py") else prog
        shown = "\n".join(f"  {typed} {line}" for line in examples.splitlines())
        super().__init__(
            prog=prog, usage=usage, description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog="\n".join(filter(None, [end, shown and f"examples:\n{shown}"])) or None,
        )
        self.add_argument("-V", "--version", action="version", version=f"inlinebench {__version__}")
        self._elsewhere = elsewhere

    @property
    def options(self) -> Collection[str]:
        """The options that this parser has."""
        return self._option_string_actions

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        if message.startswith(_UNKNOWN):
            message = self._unknown(message.removeprefix(_UNKNOWN).split())
        raise UsageError(message.removeprefix("argument "))

    def _unknown(self, arguments: list[str]) -> str:
        option = next((text for text in arguments if text.startswith("-")), "").partition("=")[0]
        if not option:
            return f"{_UNKNOWN}{' '.join(arguments)}; {self.prog} --help shows the arguments"
        nearest = difflib.get_close_matches(option, self._option_string_actions, n=1)
        if option in self._elsewhere:
            hint = "it is an option of inlinebench run"
        elif nearest:
            hint = f"did you mean {nearest[0]}?"
        else:
            hint = f"{self.prog} --help lists the options"
        return f"unknown option {option}; {hint}"
