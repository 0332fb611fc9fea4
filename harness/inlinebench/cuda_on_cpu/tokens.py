"""C++ text as tokens whose texts, joined, are the text again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["space", "directive", "string", "character", "number", "word", "sign"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of source text.

    `space` is blanks, line ends, comments and, later on, whatever the preprocessor drops; `directive` is a whole
    preprocessor line without its line end. `line` is 1-based: where the token starts.
    """

    kind: Kind
    text: str
    line: int


# A backslash before a line end joins two lines anywhere; between tokens that is the same as a blank.
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
    """The tokens of `text`, the first of them at `line`. Never fails: a stray character is a sign.

    `>` and `<` are signs of their own (never `>>`), `<<<` is one; the text of a macro has no `directives`.
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
    """The text of the tokens."""
    return "".join(token.text for token in tokens)


class Code:
    """A list of tokens to read past spaces, and to rewrite in place.

    Positions are indices into `tokens`; -1 and `len(tokens)` stand for "none there".
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def text(self, position: int) -> str:
        """The text of a token that is no space or directive; empty where there is none."""
        if not 0 <= position < len(self.tokens):
            return ""
        token = self.tokens[position]
        return "" if token.kind in ("space", "directive") else token.text

    def is_word(self, position: int) -> bool:
        """Whether a name or keyword is there."""
        return 0 <= position < len(self.tokens) and self.tokens[position].kind == "word"

    def after(self, position: int) -> int:
        """The next token that is no space."""
        position += 1
        while position < len(self.tokens) and self.tokens[position].kind == "space":
            position += 1
        return min(position, len(self.tokens))

    def before(self, position: int) -> int:
        """The previous token that is no space."""
        position -= 1
        while position >= 0 and self.tokens[position].kind == "space":
            position -= 1
        return max(position, -1)

    def words(self, *names: str) -> Iterator[int]:
        """Where these names (any, if none are given) are, as they are now."""
        wanted = set(names)
        for position, token in enumerate(self.tokens):
            if token.kind == "word" and (not wanted or token.text in wanted):
                yield position

    def replace(self, position: int, text: str) -> None:
        """Another text for one token. Its line ends have to be as many as before."""
        old = self.tokens[position]
        self.tokens[position] = Token(old.kind, text, old.line)

    def insert(self, position: int, text: str) -> None:
        """Puts text without line ends before the token at `position`."""
        self.splice(position, position, text)

    def splice(self, start: int, end: int, text: str) -> None:
        """Other text for the tokens from `start` up to `end`. Their line ends have to be as many as before."""
        line = self.tokens[min(start, len(self.tokens) - 1)].line if self.tokens else 1
        self.tokens[start:end] = tokenize(text, line, directives=False)

    def closing(self, position: int) -> int:
        """Where the bracket opened at `position` closes, or the end of the text."""
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
        """Where the bracket closed at `position` opens, or -1."""
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
        """Where the template arguments that `>` at `position` ends begin, or -1 if it ends none."""
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
        """Where the template arguments that `<` at `position` begins end, or -1 if it begins none."""
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
