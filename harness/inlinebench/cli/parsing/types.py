"""Types of arguments: text to value. What is not such a value stays text, which `option_rules` then refuses."""

from __future__ import annotations

import ast
from typing import Any

from inlinebench.records.errors import UsageError


def constant(text: str) -> tuple[str, Any]:
    """Name and value of `--set NAME=VALUE`. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--set {text}: write NAME=VALUE, for example --set M=256")
    try:
        found = ast.literal_eval(value)
        ast.literal_eval(repr(found))  # not so for 1e999, which a file cannot contain
        return name, found
    except (ValueError, SyntaxError) as error:
        raise UsageError(f"--set {text}: {value!r} is not a Python literal (a number, a string, a tuple)") from error


def whole(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def shard(text: str) -> tuple[int, int] | str:
    part, _, parts = text.partition("/")
    return (int(part), int(parts)) if part.isdecimal() and parts.isdecimal() else text


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def architectures(text: str) -> list[str]:
    """Compute capabilities as nvcc writes them, without `sm_`."""
    return [name.strip().removeprefix("sm_") for name in text.split(",")]


def headers(text: str) -> bool:
    """Whether to build with torch's full headers. Raises UsageError."""
    if text not in ("auto", "full"):
        raise UsageError(f"--headers {text}: write auto or full")
    return text == "full"


def on_off(text: str) -> bool:
    """Whether the text is `on`. Raises UsageError."""
    if text not in ("on", "off"):
        raise UsageError(f"--variants {text}: write on or off")
    return text == "on"
