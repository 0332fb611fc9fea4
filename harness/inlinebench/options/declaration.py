"""Declares an option as a field of a record, with everything that the command line, the rules and the keys need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from inlinebench.options.kinds import Kind


@dataclass(frozen=True)
class Option:
    """The declaration of an option."""

    kind: Kind
    """How its text becomes a value, and which values are valid."""
    text: str
    """What it does, without its default."""
    group: str
    """The group of the command line's help. Empty if the command line does not have it as an option."""
    decides: bool
    """Whether results depend on it. Then it is part of their keys."""
    flags: tuple[str, ...]
    """Its flags. Messages name the last one."""
    variable: str
    """The environment variable with its default. Empty if there is none."""
    default: Any
    """Its default; with a variable, its text."""
    name: str = ""
    """The name of its field."""
    scope: str = ""
    """Its scope: `job`, `judge` or `build`, which one evaluation also has, or `run`."""

    @property
    def flag(self) -> str:
        """The flag that messages name."""
        return self.flags[-1]

    @property
    def help(self) -> str:
        """Its text with its default, unless the text states it."""
        default, kind = self.default, self.kind
        if self.variable:
            return f"{self.text} (default: {self.variable}, else {default})"
        if not isinstance(default, str | int | float) or kind.const is not None or "(default: " in self.text:
            return self.text
        return f"{self.text} (default: {f'{default:g}' if isinstance(default, float) else default})"

    def default_in(self, environment: Mapping[str, str]) -> Any:
        """Returns the default of an option with a variable. Raises UsageError if the variable has no such value."""
        return self.kind.read(f"{self.variable}=", environment.get(self.variable) or self.default)


def option(
    default: Any, kind: Kind, text: str, group: str = "", *, decides: bool = False, flags: str = "", variable: str = ""
) -> Any:
    """Returns a field of a record of options. Its flag follows from its name unless `flags` has others.

    A callable default makes the default. That of an option with a variable is text.
    """
    found = Option(kind, text, group, decides, tuple(flags.split()), variable, default)
    if variable:
        return field(default_factory=lambda: found.default_in(os.environ), metadata={"option": found})
    if callable(default):
        return field(default_factory=default, metadata={"option": replace(found, default=default())})
    return field(default=default, metadata={"option": found})


@cache
def declared(record: type) -> Mapping[str, Option]:
    """Returns the options of a record by the names of their fields, in order."""
    scopes = {name: base.__dict__["scope"] for base in record.__mro__ if "scope" in base.__dict__
              for name in base.__annotations__}
    return {each.name: replace(found, name=each.name, scope=scopes[each.name],
                               flags=found.flags or (f"--{each.name.replace('_', '-')}",))
            for each in fields(record) for found in (each.metadata["option"],)}
