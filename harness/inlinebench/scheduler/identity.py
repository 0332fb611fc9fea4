"""The key of an evaluation: a digest of all that its result depends on. Names of files do not count, but that of a
library solution does."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from inlinebench.messages import Evaluate
from inlinebench.records.options import Options
from inlinebench.records.result import Environment

DIGITS = 32
_FILE = re.compile(r"[\w./+-]+\.(?:py|cuh?|cpp|cc|c|hpp|h|inl|json|txt)\b")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
DECIDING = (
    "check", "calls", "most_calls", "time_budget", "half_width", "warmup", "baselines", "tolerance", "seed", "variants",
    "tf32", "allow_library", "trust", "sanitize", "full_headers", "max_memory", "host_memory", "timeout",
    "problem_timeout", "build_timeout", "architectures",
)
"""The options that a result depends on, in addition to the problem's shape and precision."""


def identity(job: Evaluate, options: Options, environment: Environment) -> str | None:
    """Returns the digest of an evaluation's sources, shape, options, GPU model and software versions, in hexadecimal.

    The sources of the solutions that it is compared with are among them, because the result has the speedups over them.
    A library solution has another key than the same file under another name, which needs a kernel of its own. A seed
    counts only if `--seed` set it. GPUs of the same model count as equal. Returns None if a source cannot be
    read.
    """
    try:
        found = digests(job.problem.path), None if job.solution is None else digests(job.solution)
    except OSError:
        return None  # the evaluation reports the unreadable file
    facts: dict[str, Any] = {
        "sources": found,
        "rivals": job.rivals,
        "library": job.is_library,
        "shape": job.problem.shape,
        "constants": dict(job.problem.constants),
        "precision": job.problem.precision,
        "options": {name: getattr(options, name) for name in DECIDING},
        "device": environment.gpu or environment.cpu,
        "versions": [environment.torch, environment.cuda, environment.driver, environment.harness],
    }
    text = json.dumps(facts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def sources(path: Path) -> dict[Path, bytes]:
    """Returns the contents of a file and, recursively, of the files in its folder or subfolders that it names.

    Raises OSError if one of them cannot be read.
    """
    found: dict[Path, bytes] = {}
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in found:
            found[file] = file.read_bytes()
            todo += _named(found[file].decode(errors="replace"), file.parent)
    return found


def digests(path: Path) -> list[str]:
    """Returns the digests of the files that a solution or a problem consists of. Raises OSError."""
    return sorted(hashlib.sha256(text).hexdigest() for text in sources(path).values())


def _named(text: str, folder: Path) -> list[Path]:
    """Returns the files in a folder and its direct subfolders that a text names or imports as modules."""
    names = {*_FILE.findall(text), *(f"{module}.py" for module in _IMPORT.findall(text))}
    paths = [path for name in sorted(names) for path in (folder / name, *folder.glob(f"*/{name}"))
             if not Path(name).is_absolute()]
    return [path for path in paths if path.is_file()]
