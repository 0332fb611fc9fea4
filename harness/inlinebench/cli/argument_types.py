"""Types of arguments: text to value, or an error that says what is expected."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any

from inlinebench.records.errors import UsageError
from inlinebench.records.options import ALL_DEVICES, BASELINES, SOLUTION_BASELINE, number_of


def constant(text: str) -> tuple[str, Any]:
    """Name and value of `--set NAME=VALUE`. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--set {text}: write NAME=VALUE, for example --set M=256")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise UsageError(f"--set {text}: {value!r} is not a Python literal (a number, a string, a tuple)") from error


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def positive_number(text: str) -> float:
    number = number_of(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


def tolerance(text: str) -> float:
    number = number_of(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance: write 0 or a positive number")
    return number


def share(text: str) -> float:
    number = number_of(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return number


def shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard: write I/N, for example 2/8")
    return int(part), int(parts)


def devices(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if names == (ALL_DEVICES,) or set(names) == {"cpu"}:
        return names
    if all(name.isdecimal() for name in names) and len(set(names)) == len(names):
        return names
    raise argparse.ArgumentTypeError(f"{text!r}: write {ALL_DEVICES}, GPU numbers such as 0,1, or cpu,cpu")


def architectures(text: str) -> list[str]:
    """Compute capabilities as nvcc writes them, without `sm_`."""
    found = [re.fullmatch(r"(?:sm_)?([1-9]\d{1,2}[af]?)", name.strip()) for name in text.split(",")]
    names = [match[1] for match in found if match]
    if len(names) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of compute capabilities such as 90, 80,90a or sm_90")
    return names


def baseline(text: str) -> str:
    if text in BASELINES or (text.startswith(SOLUTION_BASELINE) and text != SOLUTION_BASELINE):
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(BASELINES)}, {SOLUTION_BASELINE}NAME")


def headers(text: str) -> bool:
    """Whether to build with torch's full headers."""
    if text not in ("auto", "full"):
        raise argparse.ArgumentTypeError(f"{text!r}: choose from auto, full")
    return text == "full"


def on_off(text: str) -> bool:
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"{text!r}: choose from on, off")
    return text == "on"
