"""The rules that the options of a run must satisfy, for the command line and the Python API alike.

Messages name flags of the command line. `in_fields` rewrites them for callers from Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from inlinebench.records.errors import UsageError
from inlinebench.records.options import (
    ALL_DEVICES,
    BASELINES,
    DEVICE,
    EXECUTORS,
    PRECISIONS,
    RAY,
    SANITIZERS,
    SOLUTION_BASELINE,
    Options,
)

Shown = Callable[[str, Any], str]
"""How a message shows a field and its value: `--calls many` or `calls='many'`."""
_FLAGS = {
    "solution_files": "--solution", "levels": "--level", "tags": "--tag", "shapes": "--shape", "constants": "--set",
    "baselines": "--baseline", "tolerance": "--tol", "architectures": "--arch", "full_headers": "--headers",
}
"""The flags that do not follow from the names of their fields."""


def flag(field: str) -> str:
    """Returns the flag of a field: `--most-calls` for `most_calls`."""
    return _FLAGS.get(field, f"--{field.replace('_', '-')}")


def in_fields(text: str) -> str:
    """Returns a message with the fields of `Options` in the place of their flags."""
    names = {flag(each.name): each.name for each in fields(Options)} | {"--solution": "solution"}
    return re.sub(r"--[a-z][a-z-]*", lambda found: names.get(found[0], found[0]), text)


@dataclass(frozen=True)
class _Rule:
    """What the value of a field must be."""

    wanted: str
    """What to write, as the end of a sentence that begins with `write`."""
    holds: Callable[[Any], bool]
    """Whether a value is that."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(choices: Sequence[str]) -> _Rule:
    return _Rule(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices)


def _each(rule: _Rule) -> _Rule:
    return _Rule(rule.wanted, lambda value: isinstance(value, tuple) and all(map(rule.holds, value)))


def _are_devices(value: Any) -> bool:
    if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
        return False
    numbers = all(name.isdecimal() for name in value) and len(set(value)) == len(value)
    return value == (ALL_DEVICES,) or set(value) == {"cpu"} or numbers


def _is_shard(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_whole, value)) and 1 <= value[0] <= value[1]


def _is_baseline(value: Any) -> bool:
    named = isinstance(value, str) and value.startswith(SOLUTION_BASELINE) and value != SOLUTION_BASELINE
    return named or value in BASELINES


_COUNT = _Rule("a positive integer", lambda value: _is_whole(value) and value >= 1)
_SECONDS = _Rule("a positive number of seconds, at most 1000000", lambda value: _is_number(value) and 0 < value <= 1e6)
_GIB = _Rule("a positive number of GiB, at most 1000000", lambda value: _is_number(value) and 0 < value <= 1e6)
_TEXTS = _Rule("names", lambda value: isinstance(value, tuple) and all(isinstance(each, str) for each in value))
_PATH = _Rule("a path", lambda value: isinstance(value, Path))
_SWITCH = _Rule("True or False", lambda value: isinstance(value, bool))

_RULES: Mapping[str, _Rule] = {
    "names": _TEXTS, "shapes": _TEXTS, "tags": _TEXTS, "levels": _each(_COUNT),
    "constants": _Rule("constants with their values", lambda value: isinstance(value, Mapping)),
    "device": _Rule("auto, cuda, cuda:N or cpu",
                    lambda value: isinstance(value, str) and re.fullmatch(DEVICE, value) is not None),
    "devices": _Rule(f"{ALL_DEVICES}, GPU numbers such as 0,1, or cpu,cpu", _are_devices),
    "calls": _COUNT, "most_calls": _COUNT, "jobs": _COUNT,
    "warmup": _Rule("0 or a positive integer", lambda value: _is_whole(value) and value >= 0),
    **dict.fromkeys(("time_budget", "timeout", "build_timeout", "problem_timeout"), _SECONDS),
    "max_memory": _GIB, "host_memory": _GIB,
    "half_width": _Rule("a number between 0 and 1", lambda value: _is_number(value) and 0 < value < 1),
    "tolerance": _Rule("0 or a positive number", lambda value: _is_number(value) and 0 <= value < math.inf),
    "cache_limit": _Rule("a size in GiB, 0 or more", lambda value: _is_number(value) and value >= 0),
    "seed": _Rule("an integer", _is_whole),
    "precision": _one_of(PRECISIONS), "sanitize": _one_of(SANITIZERS), "executor": _one_of(EXECUTORS),
    "baselines": _each(_Rule(f"one of {', '.join(BASELINES)}, {SOLUTION_BASELINE}NAME", _is_baseline)),
    "architectures": _each(_Rule("compute capabilities such as 90, 80,90a or sm_90", lambda value: isinstance(
        value, str) and re.fullmatch(r"[1-9]\d{1,2}[af]?", value) is not None)),
    "shard": _Rule("I/N, for example 2/8", _is_shard),
    "cache": _PATH, "problems": _PATH, "solutions": _PATH, "solution_files": _each(_PATH), "profile": _PATH,
    **dict.fromkeys(("variants", "tf32", "allow_library", "trust", "require_sandbox", "full_headers", "check"),
                    _SWITCH),
}


def check(options: Options, shown: Shown) -> None:
    """Raises UsageError for values that are not what their options need, and for options that exclude each other."""
    for each in fields(Options):
        value, rule = getattr(options, each.name), _RULES.get(each.name)
        optional = value is None and each.default is None
        if rule is not None and not optional and not rule.holds(value):
            raise UsageError(f"{shown(each.name, value)}: write {rule.wanted}")
    _check_selection(options)
    _check_devices(options)
    _check_builds(options)
    _check_results(options)


def without_effect(options: Options, device: str) -> list[str]:
    """Returns the flags of options that are set but have no effect on this device: on the CPU, those for speedups."""
    names = ("profile", "baselines", "half_width", "most_calls", "time_budget") if device == "cpu" else ()
    plain = settled(Options(calls=options.calls))
    return [flag(name) for name in names if getattr(options, name) != getattr(plain, name)]


def settled(options: Options) -> Options:
    """Returns the options with what follows from others: `calls` raises `most_calls`, and eager is implied."""
    baselines = tuple(dict.fromkeys(name for name in options.baselines if name != BASELINES[0]))
    return replace(options, most_calls=max(options.most_calls, options.calls), baselines=baselines,
                   architectures=tuple(dict.fromkeys(options.architectures)))


def _check_selection(options: Options) -> None:
    if options.constants and options.shapes:
        raise UsageError("--set and --shape exclude each other: --set changes the constants of the file as written")
    for name, value in (("--solution", options.solution_files), ("--response", options.response)):
        if value and len(options.names) != 1:
            raise UsageError(f"{name} FILE needs exactly one problem name to be evaluated against")
    if options.solution_files and options.response is not None:
        raise UsageError("--solution and --response exclude each other")
    if options.all_blocks and options.response is None:
        raise UsageError("--all-blocks needs --response FILE")


def _check_devices(options: Options) -> None:
    if options.profile and options.device == "cpu":
        raise UsageError("--profile needs a GPU")
    if options.sanitize is not None and options.device == "cpu":
        raise UsageError("--sanitize needs a GPU: compute-sanitizer checks kernels that run there")
    if options.devices and options.device != Options.device:
        raise UsageError("--device and --devices exclude each other")
    if options.ray_address is not None and options.executor != RAY:
        raise UsageError("--ray-address needs --executor ray")
    if options.executor == RAY:
        _check_ray(options)


def _check_ray(options: Options) -> None:
    if options.devices not in ((), (ALL_DEVICES,)) and set(options.devices) != {"cpu"}:
        raise UsageError("--executor ray: Ray chooses the GPUs; use --devices all, or cpu,cpu for two workers on CPUs")
    if options.device.startswith("cuda:"):
        raise UsageError(f"--executor ray: Ray chooses the GPUs; use --device cuda instead of {options.device}")
    for name, value in (("--profile", options.profile), ("--build-only", options.build_only)):
        if value:
            raise UsageError(f"{name} works on one machine, without --executor ray")


def _check_builds(options: Options) -> None:
    if options.architectures and (options.device == "cpu" or "cpu" in options.devices):
        raise UsageError("--arch is for GPUs: leave out --arch or the CPU")
    if not options.build_only:
        return
    for name in ("devices", "sanitize", "profile", "out", "junit", "shard"):
        if getattr(options, name):
            raise UsageError(f"--build-only evaluates nothing: leave out {flag(name)}")


def _check_results(options: Options) -> None:
    if options.resume and options.out is None:
        raise UsageError("--resume needs --out FILE: it skips the results that FILE has")
    if options.out and options.junit and options.out.resolve() == options.junit.resolve():
        raise UsageError("--out and --junit are the same file, and the second would replace the first: name two files")
    if options.shard and len(options.solution_files) > 1:
        raise UsageError("--shard and several --solution exclude each other: they may be in different shards")
