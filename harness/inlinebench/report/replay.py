"""The command that repeats an evaluation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from inlinebench.device_kinds import KINDS, known_kind
from inlinebench.foreign import one_line
from inlinebench.results.result import WITH_BACKWARD, Result


def command(result: Result) -> str:
    """Returns a command line that repeats an evaluation with the same inputs.

    Run it in the folder where the run was started. Options that a result does not record, such as `--tol`, are missing.
    """
    shape = one_line(result.shape).removesuffix(WITH_BACKWARD)
    if result.fuzz is None:
        return _line(result, _shape(shape))
    return _line(result, ["--fuzz", str(result.fuzz.wanted), *_shape(shape.partition(",")[2])])


def at_smallest(result: Result) -> str:
    """Returns a command line that evaluates the smallest size at which a solution fails by itself; "" if there is none,
    or if `--set` cannot name it."""
    failed_at = (result.fuzz and result.fuzz.alone and result.fuzz.failed_at) or ()
    if not failed_at or not all(each.partition("=")[0].isidentifier() for each in failed_at):
        return ""
    others = _shape(one_line(result.shape).removesuffix(WITH_BACKWARD).partition(",")[2])
    return _line(result, [*others, *_shape(",".join(map(one_line, failed_at)))])


def _line(result: Result, where: Sequence[str]) -> str:
    name = f"{one_line(result.problem)}/{one_line(result.solution)}"
    words = ["inlinebench", "run", *(["--"] if name.startswith("-") else []), name]
    options = [*where, *(["--backward"] if result.shape.endswith(WITH_BACKWARD) else []), *_device(result.device),
               *(["--tf32"] if result.environment and result.environment.tf32 else []),
               *([] if result.seed is None else ["--seed", str(result.seed)])]
    return shlex.join([*words[:2], *options, *words[2:]])


def _device(device: str) -> list[str]:
    """Returns the option for a device of another kind than the one that is looked for first."""
    kind = known_kind(device)
    return [] if kind in (None, KINDS[0]) else ["--device", kind.name]


def _shape(shape: str) -> list[str]:
    """Returns the options for a shape by its name, or for the constants that it is named after; none for ""."""
    if "=" not in shape:
        return ["--shape", shape] if shape else []
    constants = re.split(r",(?=[^,=]+=)", shape)  # not at the commas of `shape=(2, 3)`
    return [word for constant in constants for word in ("--set", constant)]
