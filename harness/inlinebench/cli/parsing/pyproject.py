"""Defaults of options from `[tool.inlinebench]` in a pyproject.toml."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inlinebench.errors import UsageError
from inlinebench.options.kinds import PATHS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE, TABLE = "pyproject.toml", "tool.inlinebench"


def defaults(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Returns the nearest pyproject.toml with the table, of a folder or its parents, and the table; empty without one.

    Raises UsageError if the file cannot be read.
    """
    for path in (above / FILE for above in (folder, *folder.parents)):
        try:
            text = path.read_bytes() if path.is_file() else b""
            if TABLE.encode() not in text:
                continue
            table = tomllib.loads(text.decode("utf-8-sig")).get("tool", {}).get("inlinebench")
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}; correct its table [{TABLE}]") from error
        if table is not None and not isinstance(table, Mapping):
            raise UsageError(f"{path}: {TABLE} = {table!r}: write a table, [{TABLE}]")
        if table is not None:
            return path, table
    return folder / FILE, {}


def arguments(path: Path, table: Mapping[str, Any], every: argparse.ArgumentParser, own: argparse.ArgumentParser,
              given: argparse.Namespace) -> list[str]:
    """Returns a table as command-line arguments, without the options that a command line has or a command lacks.

    Args:
        path: the file of the table. Its relative paths are relative to its folder.
        table: the values by option, without the dashes.
        every: the parser of all options, which decides what an unknown one is.
        own: the parser of the command.
        given: the options of the command line.

    Raises UsageError for an unknown option or an unusable value.
    """
    known = {option: action for action in every._actions for option in action.option_strings
             if option.startswith("--") and action.dest not in ("help", "version")}
    here = {option for action in own._actions for option in action.option_strings}
    found: list[str] = []
    for name, value in table.items():
        option = f"--{name}"
        if option not in known:
            nearest = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean {nearest[0].lstrip('-')}?" if nearest else ""
            raise UsageError(f"{path}: [{TABLE}] has the unknown key {name!r}{hint}")
        action = known[option]
        if option in here and not hasattr(given, action.dest):
            found += _written(path, name, value, action)
    return found


def _written(path: Path, name: str, value: Any, action: argparse.Action) -> Iterator[str]:
    if action.nargs == 0 or (action.nargs == "?" and isinstance(value, bool)):  # a switch, or its value is optional
        if not isinstance(value, bool):
            raise UsageError(f"{path}: [{TABLE}] {name} = {value!r}: write true or false")
        yield from [f"--{name}"] if value else []
        return
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str | int | float) or isinstance(each, bool):
            raise UsageError(f"{path}: [{TABLE}] {name} = {value!r}: write what follows --{name} on a command line")
        yield f"--{name}={path.parent / str(each) if action.type in PATHS else each}"
