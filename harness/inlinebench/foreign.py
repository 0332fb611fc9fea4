r"""Shows foreign text: what a solution, its build or its process can choose, and every text of a result file.

Terminals obey control characters, and CI services obey commands in logs and in JUnit files. So whatever is printed or
written into a report shows foreign text through this module. It happens where a text is shown, not where it enters:
names stay what they are, and result files that are read back are foreign as well.

A character without a visible form is shown as Python's escape for it, such as `\x1b` or `\u202e`. Every character has
one, it needs no special font, and terminals without Unicode show other characters in the same way. The backslash itself
is not escaped, so a text that is shown twice does not change.
"""

from __future__ import annotations

import re
import unicodedata

BAR = "  | "
"""Begins each line of a quotation, so that no line of an output begins with foreign text."""
LONGEST = 500
_UNUSUAL = re.compile(r"[^\x20-\x7e]")
_COMMAND = re.compile(r"\[(?=\[ATTACHMENT\|)|#(?=#(?:vso|teamcity)?\[)", re.IGNORECASE)
"""What CI services obey anywhere in a line: GitHub's `##[group]`, Azure's `##vso[...]`, TeamCity's `##teamcity[...]`;
and `[[ATTACHMENT|...]]` in JUnit files, to which Jenkins and GitLab attach the named file."""
_COMMAND_OF_A_LINE = re.compile(r"\A\s*:(?=:)")
"""What GitHub obeys at the beginning of a line: `::stop-commands::token`."""


def one_line(text: str, limit: int | None = LONGEST) -> str:
    """Returns the whole text in one line, cut after `limit` characters. A line break is shown as `\\n`.

    The line may begin with the text.
    """
    shown = _shown(text.strip(" ")[: None if limit is None else limit + 1])
    return _cut(_COMMAND_OF_A_LINE.sub(_with_escape, shown), limit)


def first_line(text: str, limit: int | None = LONGEST) -> str:
    """Returns the first line that is not blank, as `one_line` does."""
    return one_line(_trimmed(text).partition("\n")[0].expandtabs(), limit)


def lines(text: str, limit: int | None = None) -> list[str]:
    """Returns all lines, each cut after `limit` characters. Tabs are expanded: a caret stays below its column."""
    return [_cut(_shown(line.rstrip(" ")), limit) for line in text.replace("\r\n", "\n").expandtabs().split("\n")]


def block(text: str) -> str:
    """Returns all lines as one text, for a format that marks where a text begins and ends."""
    return "\n".join(lines(text))


def quotation(text: str, limit: int | None = None) -> str:
    """Returns all lines, each behind `BAR`, without blank lines around them."""
    found = lines(text.replace("\r\n", "\n").strip("\n"), limit)
    return "\n".join(f"{BAR}{line}".rstrip(" ") for line in found)


def message(text: str, limit: int | None = None) -> str:
    """Returns a text that begins with the harness's own words or follows them: the first line, the others quoted."""
    first, newline, others = _trimmed(text).partition("\n")
    return one_line(first.expandtabs(), limit) + (f"\n{quotation(others, limit)}" if newline else "")


def inert_json(text: str) -> str:
    """Returns JSON with the same value that has no command of a CI service in it: result files are printed as well."""
    return _COMMAND.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _shown(text: str) -> str:
    return _COMMAND.sub(_with_escape, _UNUSUAL.sub(_visible, text))


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    visible = character.isprintable() or unicodedata.category(character) == "Zs"  # a space of another width
    return character if visible else character.encode("unicode_escape").decode()


def _with_escape(found: re.Match[str]) -> str:
    """Returns a match with its last character as an escape."""
    return f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}"


def _trimmed(text: str) -> str:
    """Returns a text without blank lines around it and without the indentation of its first line."""
    return text.replace("\r\n", "\n").strip(" \t\n")


def _cut(line: str, limit: int | None) -> str:
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"
