"""Text of strangers, made fit for a page of many lines: logs, sources, names."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Terminal control sequences: colours and cursor movement, titles and links."""
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


def clean(text: str) -> str:
    """`text` without terminal sequences, its line ends as `\\n`, and every character shown that could deceive.

    Control characters, lone surrogates and marks that reorder text become U+FFFD, so that the page can be encoded and
    a source reads as the compiler read it. Indentation and blank lines stay. What is clean is left as it is.
    """
    lines = _SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNUSUAL.sub(_shown, lines)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    harmless = character.isprintable() or unicodedata.category(character) == "Zs"
    return character if harmless else "\N{REPLACEMENT CHARACTER}"
