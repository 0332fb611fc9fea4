"""Reads problems of FlashInfer-Trace and SOL-ExecBench by writing each as the text of a problem file.

Nothing of a definition is executed here. Its reference runs where that of a problem file runs.
"""

from __future__ import annotations

from pathlib import Path

from inlinebench.catalog.traces.definition import read_definition
from inlinebench.catalog.traces.fields import DefinitionError
from inlinebench.catalog.traces.layout import recorded_file, workloads_of
from inlinebench.catalog.traces.problem_text import write
from inlinebench.catalog.traces.workload_file import TraceWorkload, read_workload_file


def read_trace(path: Path) -> str:
    """Returns the problem of a definition as Python source. Raises DefinitionError if it or its workloads cannot be
    understood, and OSError if they cannot be read."""
    definition = read_definition(path)
    return write(definition, _workloads(path))


def trace_files(path: Path) -> list[Path]:
    """Returns the files that a problem depends on: its definition, its workloads, and the recorded inputs that exist.

    Raises OSError if one cannot be read. Of files that cannot be understood, only those that are known are returned.
    """
    try:
        named = {each.value[0] for workload in _workloads(path) for each in workload.sources.values()
                 if isinstance(each.value, tuple)}
    except DefinitionError:
        return [path]
    found = (recorded_file(path, name) for name in sorted(named))
    return [path, workloads_of(path), *(each for each in found if each is not None)]


def _workloads(path: Path) -> tuple[TraceWorkload, ...]:
    file = workloads_of(path)
    if not file.is_file():
        raise DefinitionError(f"{path}: it has no workloads; add {file}")
    return read_workload_file(file, read_definition(path))
