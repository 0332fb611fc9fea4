"""The command `inlinebench`: dispatches to its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module

from inlinebench.cli.exits import UNUSABLE, ended, say
from inlinebench.version import __version__

COMMANDS = {
    "run": "check and time solutions",
    "check": "check correctness only",
    "init": "create a problem and a solution to start from",
    "list": "list problems, shapes and solutions",
    "audit": "find flaws that make a problem a bad benchmark",
    "build": "build solutions without evaluating them",
    "compare": "compare two files of results",
    "merge": "join the results of several shards",
    "report": "write results as HTML, Markdown, CSV or JUnit XML",
    "serve": "evaluate for other processes, by HTTP",
    "schema": "print the JSON schema of results",
    "cache": "show, prune or clear built libraries",
}
"""A command is one of `inlinebench.cli.arguments.EVALUATING`, or a module of this package with a function `main`, which
takes its arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 2 for a usage error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] in (["-V"], ["--version"]):
        print(f"inlinebench {__version__}")
        return 0
    if given[:1] in (["-h"], ["--help"]):
        print(usage())
        return 0
    if not given:
        print(usage(), file=sys.stderr)
        return UNUSABLE
    if given[0] not in COMMANDS:
        nearest = get_close_matches(given[0], COMMANDS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"choose from {', '.join(COMMANDS)}"
        say(f"inlinebench: unknown command {given[0]!r}; {hint}")
        return UNUSABLE
    prog = f"inlinebench {given[0]}"
    return ended(prog, lambda: _command(given[0])(given[1:]))


def _command(name: str) -> Callable[[Sequence[str]], int]:
    # Imported here, where Ctrl-C is no traceback.
    from inlinebench.cli.arguments import EVALUATING
    from inlinebench.cli.run import run

    if name in EVALUATING:
        return lambda arguments: run(arguments, EVALUATING[name], f"inlinebench {name}")
    command: Callable[[Sequence[str]], int] = import_module(f"inlinebench.cli.{name}").main
    return command


def usage() -> str:
    """The commands, one on each line."""
    lines = [f"  {name:<9} {what}" for name, what in COMMANDS.items()]
    return "\n".join(["usage: inlinebench COMMAND [...]", "", *lines, "",
                      "inlinebench COMMAND --help lists the options of a command."])


if __name__ == "__main__":
    sys.exit(main())
