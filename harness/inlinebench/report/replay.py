"""The command that repeats an evaluation."""

from __future__ import annotations

import shlex

from inlinebench.device_kinds import KINDS, known_kind
from inlinebench.foreign import one_line
from inlinebench.results.result import WITH_BACKWARD, Result


def command(result: Result) -> str:
    """Returns a command line that repeats an evaluation with the same inputs.

    Run it in the folder where the run was started. Options that a result does not record, such as `--tol`, are missing.
    """
    name = f"{one_line(result.problem)}/{one_line(result.solution)}"
    words = ["inlinebench", "run", *(["--"] if name.startswith("-") else []), name]
    shape = one_line(result.shape)
    options = [*_shape(shape.removesuffix(WITH_BACKWARD)),
               *(["--backward"] if shape.endswith(WITH_BACKWARD) else []), *_device(result.device),
               *(["--tf32"] if result.environment and result.environment.tf32 else []),
               *([] if result.seed is None else ["--seed", str(result.seed)])]
    return shlex.join([*words[:2], *options, *words[2:]])


def _device(device: str) -> list[str]:
    """Returns the option for a device of another kind than the one that is looked for first."""
    kind = known_kind(device)
    return [] if kind in (None, KINDS[0]) else ["--device", kind.name]


def _shape(shape: str) -> list[str]:
    if "=" not in shape:
        return ["--shape", shape]
    return [word for constant in shape.split(",") for word in ("--set", constant)]
