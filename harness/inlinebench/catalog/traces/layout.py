"""Where the files of FlashInfer-Trace and SOL-ExecBench are.

A set of FlashInfer-Trace has `definitions/<op_type>/<name>.json` and `workloads/<op_type>/<name>.jsonl`. A problem of
SOL-ExecBench is a folder with `definition.json` and `workload.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".json"
PROBLEM_SUFFIXES = (".py", SUFFIX)
"""How the names of problem files end."""
_DEFINITIONS, _WORKLOADS = "definitions", "workloads"
_DEFINITION, _WORKLOAD = "definition.json", "workload.jsonl"


def is_definition(path: Path) -> bool:
    """Whether the file of a problem is a definition, by its name."""
    return path.suffix == SUFFIX


def definitions(folder: Path) -> Iterator[Path]:
    """Yields the definitions in a folder of problems: a whole set, its `definitions` or a folder in there, a problem of
    SOL-ExecBench, or a folder of these."""
    if _root(folder.resolve() / "*") is not None:
        yield from folder.rglob(f"*{SUFFIX}")
    else:
        yield from (folder / _DEFINITIONS).rglob(f"*{SUFFIX}")
        yield from folder.glob(_DEFINITION)
        yield from folder.glob(f"*/{_DEFINITION}")


def name_of(problem: Path) -> str:
    """Returns the name of a problem: that of its file, or of the folder of `definition.json`."""
    return problem.resolve().parent.name if problem.name == _DEFINITION else problem.stem


def workloads_of(definition: Path) -> Path:
    """Returns the file of the workloads of a definition, which may not exist."""
    root = _root(definition.resolve())
    if root is None:
        return definition.with_name(_WORKLOAD)
    return root / _WORKLOADS / definition.resolve().relative_to(root / _DEFINITIONS).with_suffix(".jsonl")


def recorded_file(definition: Path, name: str) -> Path | None:
    """Returns the file with recorded inputs that a workload names, relative to the folder of the definition or one
    above it. None if there is none."""
    found = (folder / name for folder in definition.resolve().parents)
    return next((path for path in found if path.is_file()), None)


def _root(definition: Path) -> Path | None:
    """Returns the folder of a set of FlashInfer-Trace. None if the definition is in no folder `definitions`."""
    return next((folder.parent for folder in definition.parents if folder.name == _DEFINITIONS), None)
