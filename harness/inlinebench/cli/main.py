"""The command `inlinebench`: passes what follows on to one of the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from inlinebench.records.errors import UsageError
from inlinebench.version import __version__

COMMANDS = {
    "run": ("inlinebench.cli.run", "evaluate solutions (what run_eval.py does)"),
    "compare": ("inlinebench.cli.compare", "what changed from one file of results to another"),
    "report": ("inlinebench.cli.report", "results as a page, a table, CSV or JUnit"),
    "merge": ("inlinebench.cli.merge", "join the files of several shards"),
    "cache": ("inlinebench.cli.cache", "show, prune or clear built libraries"),
}
"""By name: the module whose `main` takes the arguments, and what it does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; gives the exit status. 2 is what can't be meant."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        print(f"inlinebench {__version__}")
        return 0
    if not given or given[0] not in COMMANDS:
        asked = bool(given) and given[0] in ("-h", "--help")
        if given and not asked:
            print(f"inlinebench: there is no command {given[0]!r}", file=sys.stderr)
        print(usage(), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    command: Callable[[Sequence[str]], int] = import_module(COMMANDS[given[0]][0]).main
    try:
        return command(given[1:])
    except UsageError as error:
        print(f"inlinebench {given[0]}: {error}", file=sys.stderr)
        return 2


def usage() -> str:
    """The commands, a line each."""
    lines = [f"  {name:<9} {what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(["usage: inlinebench COMMAND [...]", "", *lines, "", "inlinebench COMMAND --help says more."])


if __name__ == "__main__":
    sys.exit(main())
