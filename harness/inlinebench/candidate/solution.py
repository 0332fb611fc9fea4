"""Imports a solution file and constructs its `ModelNew`."""

from __future__ import annotations

import importlib.util
import inspect
import re
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


class UnusableSolution(Exception):
    """The solution cannot be evaluated. `kind` is a key of `inlinebench.evaluation.failures.FAILURES`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def import_class(path: Path, class_name: str) -> type[torch.nn.Module]:
    """Imports a solution file and returns the class: `ModelNew`, or a reference's `Model`. Raises UnusableSolution."""
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise UnusableSolution("import", f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module  # pickle, dataclasses and Triton look up the module of a function
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise failure(error, "import", path) from error
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        what = f"no class {class_name}" if found is None else f"{class_name} is not a torch.nn.Module"
        raise UnusableSolution("import", f"{path}: {what}; define a torch.nn.Module of this name at the "
                               "top level of the file")
    return found


def construct(
    kind: type[torch.nn.Module], path: Path, arguments: Sequence[Any], named: Mapping[str, Any], seed: int
) -> torch.nn.Module:
    """Constructs the model on the CPU, with all random generators seeded. Raises UnusableSolution."""
    try:
        inspect.signature(kind).bind(*arguments, **named)
    except TypeError as error:
        raise UnusableSolution("signature", f"{path}: {kind.__name__}{inspect.signature(kind)} does not accept "
                       f"the {len(arguments)} arguments of get_init_inputs(): {error}; accept those of Model"
                       ) from error
    seed_all(seed)
    try:
        return kind(*arguments, **named)
    except Exception as error:
        raise failure(error, "constructor", path) from error


_OF_PYBIND = re.compile(r"(\w+)\(\): incompatible (?:function|constructor) arguments\.")
_SIGNATURE = re.compile(r"^ +\d+\. (?:\w+)?(\(.*\)) ->", re.MULTILINE)


def _signatures(text: str) -> str:
    """Returns what pybind11's message for wrong arguments says in one line, or "" for any other text."""
    found, signatures = _OF_PYBIND.match(text), _SIGNATURE.findall(text)
    if found is None or not signatures:
        return ""
    return (f"{found[1]}() is called with arguments that its C++ function does not accept; it accepts "
            f"{' or '.join(signatures)}")


def failure(error: Exception, kind: str, path: Path) -> UnusableSolution:
    """Describes an exception of a solution in one line, with the line number in its file. Prints the traceback."""
    traceback.print_exception(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f" ({path.name}, line {frames[-1].lineno})" if frames else ""
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        where, text = f" ({path.name}, line {error.lineno})", error.msg
    first = _signatures(text) or text.strip().partition("\n")[0]
    if isinstance(error, AssertionError) and not first and frames:
        first = frames[-1].line or ""
    if isinstance(error, NotLinked):
        return UnusableSolution("not_linked", f"{first}{where}")
    kind = "out_of_memory" if is_out_of_memory(error) else kind
    return UnusableSolution(kind, f"{type(error).__name__}{first and ': '}{first}{where}{_advice(error, path)}")


def _advice(error: Exception, path: Path) -> str:
    """Says what to do if a module is missing."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    if error.name and path.with_name(f"{error.name}.py").exists():
        return "; it is next to the solution: add this folder to PYTHONPATH"
    return "; install it, or remove the import"
