"""The key of an evaluation: a digest of all that its result depends on. The solution's name does not count, but that of
a library solution does."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from inlinebench.catalog.traces import trace_files
from inlinebench.catalog.traces.layout import is_definition
from inlinebench.messages import Evaluate
from inlinebench.options import OPTIONS, Options
from inlinebench.results.result import Environment
from inlinebench.sandbox.given import digest

DIGITS = 32
_FILE = re.compile(r"[\w./+-]+\.(?:py|cuh?|cpp|cc|c|hpp|h|inl|json|txt)\b")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(.+)", re.MULTILINE)
_WRITTEN = ("out", "junit", "profile", "cache")
"""The options that name what a run writes."""


def identity(job: Evaluate, options: Options, environment: Environment) -> str | None:
    """Returns the digest of an evaluation's sources, shape, options, GPU model and software versions, in hexadecimal.

    The sources of a solution are all files that it is given. Those of the solutions that it is compared with count too,
    because the result has the speedups over them. A library solution has another key than the same file under another
    name, which needs a kernel of its own. A seed counts only if `--seed` set it. GPUs of the same model count as equal.
    Returns None if a source cannot be read.
    """
    try:
        found = [hashlib.sha256(text).hexdigest() for text in sources(job.problem.path).values()]
        own = digest_of(job, options)
    except OSError:
        return None  # the evaluation reports the unreadable file
    if None in job.rivals:
        return None
    facts: dict[str, Any] = {
        "problem": sorted(found),
        "solution": own,
        "rivals": job.rivals,
        "library": job.is_library,
        "shape": job.problem.shape,
        "constants": dict(job.problem.constants),
        "precision": job.problem.precision,
        "backward": job.problem.backward,
        "set": job.in_set,
        "drawn sizes": None if job.fuzz is None else job.fuzz.count,
        "tolerance": job.tolerance,
        "options": {name: getattr(options, name) for name, each in OPTIONS.items() if each.decides},
        "device": environment.gpu or environment.cpu,
        "versions": [environment.torch, environment.cuda, environment.driver, environment.harness],
    }
    text = json.dumps(facts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def digest_of(job: Evaluate, options: Options) -> str | None:
    """Returns the digest of the files that the solution of a job is given, without those that the run itself writes.
    None for the problem's own reference. Raises OSError if one of them cannot be read."""
    return None if job.solution is None else digest(job.given, written(options))


def written(options: Options) -> set[str]:
    """Returns the files and folders that a run writes. In the folder of a solution they would change its key with every
    result."""
    paths = [getattr(options, name) for name in _WRITTEN]
    return {os.path.realpath(path) for path in paths if path is not None}


def sources(problem: Path) -> dict[Path, bytes]:
    """Returns the contents of a problem file and, recursively, of the files in its folder or direct subfolders that it
    names or imports. Those of a definition are its workloads and the recorded inputs.

    All problems are in one folder, so the whole folder would give each of them a new key when another changes. The
    names in its text are enough for a problem, because its author is trusted to write them out. A solution may compute
    a name or find a file through a compiler, so it is not searched for names. Raises OSError if a file cannot be read.
    """
    if is_definition(problem):
        return {file: file.read_bytes() for file in trace_files(problem)}
    found: dict[Path, bytes] = {}
    todo = [problem]
    while todo:
        file = todo.pop()
        if file not in found:
            found[file] = file.read_bytes()
            todo += _named(found[file].decode(errors="replace"), file.parent)
    return found


def _named(text: str, folder: Path) -> list[Path]:
    """Returns the files in a folder and its direct subfolders that a text names, or imports as modules."""
    modules = {word for line in _IMPORT.findall(text) for word in re.findall(r"\w+", line)}
    names = {*_FILE.findall(text), *(f"{module}.py" for module in modules)}
    paths = [path for name in sorted(names) for path in (folder / name, *folder.glob(f"*/{name}"))
             if not Path(name).is_absolute()]
    return [path for path in paths if path.is_file()]
