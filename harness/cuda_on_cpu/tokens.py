"""Splits C++ text into tokens. Joining the tokens' texts gives the text again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["space", "directive", "string", "character", "number", "word", "sign"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of source text.

    `space` is blanks, line ends, comments and, after `drop_inactive`, text that the preprocessor drops. `directive` is
    a whole preprocessor line without its line end. `line` is the line of the token's start, from 1.
    """

    kind: Kind
    text: str
    line: int


# A backslash before a line end joins two lines. Between tokens it has the effect of a blank.
_TOKEN = re.compile(
    r"""
    (?P<space>      (?: \s | \\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )+ )
  | (?P<raw>        (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\( .*? (?: \)(?P=fence)" | \Z ) )
  | (?P<string>     (?:u8|[uUL])?"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z) )
  | (?P<character>  (?:u8|[uUL])?'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z) )
  | (?P<number>     \.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z]|[0-9a-zA-Z_.])* )
  | (?P<word>       [^\W\d][\w$]* )
  | (?P<sign>       <<<|::|->\*?|\.\.\.|[-+*/%&|^!=]=|==|&&|\|\||\+\+|--|. )
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS: dict[str, Kind] = {
    "space": "space",
    "raw": "string",
    "fence": "string",
    "string": "string",
    "character": "character",
    "number": "number",
    "word": "word",
    "sign": "sign",
}
_DIRECTIVE = re.compile(
    r"""
    \# (?: \\\r?\n | /\*.*?(?:\*/|\Z) | //(?:\\\r?\n|[^\n])*
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | [^\n] )*
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str, line: int = 1, directives: bool = True) -> list[Token]:
    """Returns the tokens of `text`, whose first line has number `line`. Never fails: a stray character is a sign.

    `<<<` is one token, but `>` and `<` are otherwise separate tokens (never `>>`). The text of a macro has no
    `directives`.
    """
    return list(_scan(text, line, directives))


def _scan(text: str, line: int, directives: bool) -> Iterator[Token]:
    position = 0
    line_start = True
    while position < len(text):
        directive = directives and line_start and text[position] == "#"
        match = (_DIRECTIVE if directive else _TOKEN).match(text, position)
        assert match  # both match at least one character
        piece = match.group()
        kind: Kind = "directive" if directive else _KINDS[match.lastgroup or "sign"]
        yield Token(kind, piece, line)
        line_start = (line_start or "\n" in piece) if kind == "space" else False
        line += piece.count("\n")
        position = match.end()


def join(tokens: Iterable[Token]) -> str:
    """Returns the text of the tokens."""
    return "".join(token.text for token in tokens)


class Code:
    """A list of tokens that can be read without spaces, and rewritten in place.

    Positions are indices into `tokens`; -1 and `len(tokens)` mean that there is no token.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def text(self, position: int) -> str:
        """Returns the text of a token, or "" for a space, a directive or no token."""
        if not 0 <= position < len(self.tokens):
            return ""
        token = self.tokens[position]
        return "" if token.kind in ("space", "directive") else token.text

    def is_word(self, position: int) -> bool:
        """Whether the token is a name or keyword."""
        return 0 <= position < len(self.tokens) and self.tokens[position].kind == "word"

    def after(self, position: int) -> int:
        """Returns the position of the next token that is not a space."""
        position += 1
        while position < len(self.tokens) and self.tokens[position].kind == "space":
            position += 1
        return min(position, len(self.tokens))

    def before(self, position: int) -> int:
        """Returns the position of the previous token that is not a space."""
        position -= 1
        while position >= 0 and self.tokens[position].kind == "space":
            position -= 1
        return max(position, -1)

    def words(self, *names: str) -> Iterator[int]:
        """Iterates over the positions of these names, or of all words if none are given, while tokens may change."""
        wanted = set(names)
        for position, token in enumerate(self.tokens):
            if token.kind == "word" and (not wanted or token.text in wanted):
                yield position

    def replace(self, position: int, text: str) -> None:
        """Replaces the text of a token. The number of line ends must stay the same."""
        old = self.tokens[position]
        self.tokens[position] = Token(old.kind, text, old.line)

    def insert(self, position: int, text: str) -> None:
        """Inserts text without line ends before the token at `position`."""
        self.splice(position, position, text)

    def splice(self, start: int, end: int, text: str) -> None:
        """Replaces the tokens from `start` up to `end` by a text. The number of line ends must stay the same."""
        line = self.tokens[min(start, len(self.tokens) - 1)].line if self.tokens else 1
        self.tokens[start:end] = tokenize(text, line, directives=False)

    def line_ends(self, start: int, end: int, *, in_strings: bool = False) -> str:
        """Returns the line ends between two positions, with their backslashes in the text of a macro.

        Those within string literals count only if the literals are left out of the translation (`in_strings`).
        """
        kinds = ("space", "string") if in_strings else ("space",)
        texts = (token.text for token in self.tokens[start:end] if token.kind in kinds)
        return "".join(line_end for text in texts for line_end in re.findall(r"\\?\r?\n", text))

    def closing(self, position: int) -> int:
        """Returns where the bracket that opens at `position` closes, or the end of the text."""
        depth = 0
        for here in range(position, len(self.tokens)):
            text = self.text(here)
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    return here
        return len(self.tokens)

    def opening(self, position: int) -> int:
        """Returns where the bracket that closes at `position` opens, or -1."""
        depth = 0
        for here in range(position, -1, -1):
            text = self.text(here)
            if text in (")", "]", "}"):
                depth += 1
            elif text in ("(", "[", "{"):
                depth -= 1
                if depth == 0:
                    return here
        return -1

    def angle_opening(self, position: int) -> int:
        """Returns where the template arguments begin that end with the `>` at `position`, or -1 if none end there."""
        depth = 0
        here = position
        while here >= 0:
            text = self.text(here)
            if text == ">":
                depth += 1
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return here
            elif text in (")", "]", "}"):
                here = self.opening(here)
            elif text in (";", "{", "(", "["):
                return -1
            here -= 1
        return -1

    def angle_closing(self, position: int) -> int:
        """Returns where the template arguments end that begin with the `<` at `position`, or -1 if none begin there."""
        depth = 0
        here = position
        while here < len(self.tokens):
            text = self.text(here)
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return here
            elif text in ("(", "[", "{"):
                here = self.closing(here)
            elif text in (";", "}", ")", "]"):
                return -1
            here += 1
        return -1
