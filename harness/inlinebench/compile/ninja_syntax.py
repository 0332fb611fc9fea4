"""Words of commands in ninja files: what stands for itself, and what ninja puts there.

Where compilers, torch and our own headers lie stands in a file of its own, as ninja's variables.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from inlinebench.records.build_request import BadRequest

PLACES = "places.ninja"
"""The one file of a recipe that is no part of its key."""


class Expanded(str):
    """A word of a command, in which ninja puts the value of a variable: `$in`, `$torch/include`."""

    __slots__ = ()


# Words of commands. What they stand for is in PLACES.
IN, OUT, CXX, NVCC, SLIM = map(Expanded, ("$in", "$out", "$cxx", "$nvcc", "$slim"))
THRUST = Expanded("$thrust")
HOST = (Expanded("$ccbin"), Expanded("$host"))
"""nvcc's host compiler where it is another than the one that it would take: nothing, or a flag and a path."""
PREFIXED = (Expanded("-I$precompiled"), Expanded("-I$prefix"), "-include")
"""Before any other header: a precompiled one counts only there."""
TORCH_INCLUDES = (Expanded("$torch/include"), Expanded("$torch/include/torch/csrc/api/include"))


def split(flags: Sequence[str]) -> list[str]:
    """Single flags: one string may hold several, as in the shell command that torch makes of them."""
    words: list[str] = []
    for flag in flags:
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise BadRequest(f"the flag {flag!r} can't be read: {error}") from error
    return words


def command(words: Sequence[str]) -> str:
    """A shell command for a ninja rule; ninja's variables count only in words that are Expanded."""
    for word in words:
        if "\n" in word:
            raise BadRequest(f"the flag {word!r} has a line break, which no ninja file can hold")
    return " ".join(word if isinstance(word, Expanded) else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    return shlex.quote(word).replace("$", "$$")


def places_file(places: Mapping[str, str]) -> str:
    """What ninja's variables are, as ninja reads it; an empty one is no word at all."""
    return "".join(f"{name} = {_quoted(place) if place else ''}\n" for name, place in places.items())
