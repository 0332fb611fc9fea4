"""The rules that the options of a run must satisfy, for the command line and the Python API alike.

Messages name flags of the command line. `in_fields` rewrites them for callers from Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inlinebench.device_kinds import kind_of
from inlinebench.errors import UsageError
from inlinebench.options import OPTIONS, RAY, Options
from inlinebench.options.kinds import ALL_DEVICES, BASELINES

Shown = Callable[[str, Any], str]
"""How a message shows a field and its value: `--min-calls many` or `min_calls='many'`."""


def in_fields(text: str) -> str:
    """Returns a message with flags replaced by the fields of `Options`."""
    names = {each.flag: name for name, each in OPTIONS.items()} | {"--solution": "solution"}
    return re.sub(r"--[a-z][a-z-]*", lambda found: names.get(found[0], found[0]), text)


def check(options: Options, shown: Shown) -> None:
    """Raises UsageError for values that are not what their options need, and for options that exclude each other."""
    for name, each in OPTIONS.items():
        value = getattr(options, name)
        if not (value is None and each.default is None) and not each.kind.holds(value):
            raise UsageError(f"{shown(name, value)}: write {each.kind.wanted}")
    _check_selection(options)
    _check_devices(options)
    _check_builds(options)
    _check_results(options)


def without_effect(options: Options, device: str) -> list[str]:
    """Returns the flags of options that are set but have no effect on this device: those for speedups, if its times are
    not compared."""
    plain = settled(Options(min_calls=options.min_calls))
    if kind_of(device).times_are_comparable:
        return []
    return [each.flag for name, each in OPTIONS.items()
            if each.group == "times" and getattr(options, name) != getattr(plain, name)]


def settled(options: Options) -> Options:
    """Returns the options with what follows from others: `min_calls` raises `max_calls`, eager is implied, and under a
    sanitizer there are no variants."""
    baselines = tuple(dict.fromkeys(name for name in options.baselines if name != BASELINES[0]))
    return replace(options, max_calls=max(options.max_calls, options.min_calls), baselines=baselines,
                   architectures=tuple(dict.fromkeys(options.architectures)),
                   variants=options.variants and options.sanitize is None)


def _check_selection(options: Options) -> None:
    if options.constants and options.shapes:
        raise UsageError("--set and --shape exclude each other: --set changes the constants of the file as written")
    if options.workloads and (options.shapes or options.sanitize is not None):
        raise UsageError("--workloads excludes --shape and --sanitize: name one workload with --shape to evaluate it "
                         "alone")
    _check_fuzz(options)
    for flag, given in (("--fuzz", options.fuzz is not None), ("--sanitize", options.sanitize is not None)):
        if options.determinism and given:
            raise UsageError(f"--determinism and {flag} exclude each other: run once with each")
    if options.workloads and options.shard:
        raise UsageError("--workloads and --shard exclude each other: a set would be cut in two, and what one half "
                         "keeps would not show in the other; name the problems of each part instead")
    for name, value in (("--solution", options.solution_files), ("--response", options.response)):
        if value and len(options.names) != 1:
            raise UsageError(f"{name} FILE needs exactly one problem name to be evaluated against")
    if options.solution_files and options.response is not None:
        raise UsageError("--solution and --response exclude each other")
    if options.all_blocks and options.response is None:
        raise UsageError("--all-blocks needs --response FILE")


def _check_fuzz(options: Options) -> None:
    if options.fuzz is None:
        return
    for name in ("workloads", "shapes", "sanitize", "build_only"):
        if getattr(options, name):
            raise UsageError(f"--fuzz excludes {OPTIONS[name].flag}: it draws the sizes itself")
    plain = settled(Options(min_calls=options.min_calls))
    if timed := [each.flag for name, each in OPTIONS.items()
                 if each.group == "times" and getattr(settled(options), name) != getattr(plain, name)]:
        raise UsageError(f"--fuzz checks correctness only: leave out {', '.join(timed)}")


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
    if options.trust and options.require_sandbox:
        raise UsageError("--trust and --require-sandbox exclude each other: --trust runs solutions without a sandbox")
    if options.architectures and (options.device == "cpu" or "cpu" in options.devices):
        raise UsageError("--arch is for GPUs: leave out --arch or the CPU")
    if not options.build_only:
        return
    for name in ("devices", "sanitize", "profile", "out", "junit", "shard"):
        if getattr(options, name):
            raise UsageError(f"--build-only evaluates nothing: leave out {OPTIONS[name].flag}")


def _check_results(options: Options) -> None:
    if options.resume and options.out is None:
        raise UsageError("--resume needs --out FILE: it skips the results that FILE has")
    if options.out and options.junit and options.out.resolve() == options.junit.resolve():
        raise UsageError("--out and --junit are the same file, and the second would replace the first: name two files")
    if options.shard and len(options.solution_files) > 1:
        raise UsageError("--shard and several --solution exclude each other: they may be in different shards")
