"""Imports a solution file and constructs its `ModelNew`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from inlinebench.candidate.load_inline import NotLinked
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.shortage import is_out_of_memory

MODULE_NAME = "solution"


class Unusable(Exception):
    """The file can't be evaluated. `kind` tells how; the text is one line for a person."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def import_class(path: Path, class_name: str) -> type[torch.nn.Module]:
    """The solution's `ModelNew` (or the reference's `Model`, where that is submitted). Raises Unusable."""
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise Unusable("import", f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module  # pickle, dataclasses and Triton look a function's module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise failure(error, "import", path) from error
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        what = "no class" if found is None else "no torch.nn.Module as"
        raise Unusable("import", f"{path}: {what} {class_name}; a solution file defines it")
    return found


def construct(
    kind: type[torch.nn.Module], path: Path, arguments: Sequence[Any], named: Mapping[str, Any], seed: int
) -> torch.nn.Module:
    """The model on the CPU, with every generator under the public seed. Raises Unusable."""
    try:
        inspect.signature(kind).bind(*arguments, **named)
    except TypeError as error:
        raise Unusable("signature", f"{path}: {kind.__name__}{inspect.signature(kind)} can't take the "
                       f"{len(arguments)} arguments of get_init_inputs(): {error}") from error
    seed_all(seed)
    try:
        return kind(*arguments, **named)
    except Exception as error:
        raise failure(error, "constructor", path) from error


def failure(error: Exception, kind: str, path: Path) -> Unusable:
    """An exception that a solution raised, in one line with the line of its file; the traceback goes to the log."""
    traceback.print_exception(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f" ({path.name}, line {frames[-1].lineno})" if frames else ""
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        where, text = f" ({path.name}, line {error.lineno})", error.msg
    first = text.strip().partition("\n")[0]
    if isinstance(error, NotLinked):
        return Unusable("not_linked", f"{first}{where}")
    return Unusable("out_of_memory" if is_out_of_memory(error) else kind, f"{type(error).__name__}: {first}{where}")
