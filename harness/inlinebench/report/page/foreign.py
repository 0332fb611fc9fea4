"""Sanitizes untrusted text for the page: logs, sources, names."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Terminal control sequences: colours and cursor movement, titles and links."""
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


def clean(text: str) -> str:
    """Returns `text` without terminal sequences, with line ends as `\\n` and deceptive characters replaced.

    Control characters, lone surrogates and characters that reorder text become U+FFFD, so that the page can be encoded
    and a source is displayed as the compiler reads it. Indentation and blank lines stay. The function is idempotent.
    """
    lines = _SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNUSUAL.sub(_shown, lines)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    harmless = character.isprintable() or unicodedata.category(character) == "Zs"
    return character if harmless else "\N{REPLACEMENT CHARACTER}"
