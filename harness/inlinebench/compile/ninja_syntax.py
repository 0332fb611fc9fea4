"""Builds commands for ninja files, from literal words and words that contain ninja's variables.

The locations of compilers, torch and the harness's headers are ninja variables in a separate file.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from inlinebench.builds.request import BadRequest

PLACES = "places.ninja"
"""The only file of a recipe that is not part of its key."""


class Expanded(str):
    """A word of a command in which ninja expands variables: `$in`, `$torch/include`."""

    __slots__ = ()


# Words of commands. PLACES defines their variables.
IN, OUT, CXX, NVCC, SLIM = map(Expanded, ("$in", "$out", "$cxx", "$nvcc", "$slim"))
THRUST = Expanded("$thrust")
HOST = (Expanded("$ccbin"), Expanded("$host"))
"""The flag and path of nvcc's host compiler if it is not the default, otherwise empty."""
PRECOMPILED_INCLUDE = (Expanded("-I$precompiled"), Expanded("-I$prefix"), "-include")
"""These come before any other header, because GCC uses a precompiled header only there."""
TORCH_INCLUDES = (Expanded("$torch/include"), Expanded("$torch/include/torch/csrc/api/include"))


def split(flags: Sequence[str]) -> list[str]:
    """Splits strings into single flags: a string may contain several, as in the shell command that torch makes."""
    words: list[str] = []
    for flag in flags:
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise BadRequest(f"the flag {flag!r} is not valid shell syntax: {error}") from error
    return words


def command(words: Sequence[str]) -> str:
    """Returns a shell command for a ninja rule. Only Expanded words may contain ninja's variables."""
    for word in words:
        if "\n" in word:
            raise BadRequest(f"the flag {word!r} contains a line break; remove it")
    return " ".join(word if isinstance(word, Expanded) else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    return shlex.quote(word).replace("$", "$$")


def places_file(places: Mapping[str, str]) -> str:
    """Returns the ninja file that defines the variables. An empty value expands to no word."""
    return "".join(f"{name} = {_quoted(place) if place else ''}\n" for name, place in places.items())


class Steps:
    """The commands of a ninja file, each with a rule of its own."""

    def __init__(self) -> None:
        self._lines = [f"include {PLACES}"]

    def add(self, rule: str, shell_command: str, output: str, inputs: str) -> None:
        """Adds a command that makes `output` from `inputs`, names of files with spaces between them."""
        self._lines += [f"rule {rule}", f"  command = {shell_command}", "", f"build {output}: {rule} {inputs}", ""]

    @property
    def text(self) -> str:
        """The text of the file."""
        return "\n".join(self._lines)
