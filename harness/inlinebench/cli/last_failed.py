"""`--last-failed`: the solutions that did not pass when they were last evaluated, kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from inlinebench.cli.exits import say
from inlinebench.compile.cache.contents import FAILED
from inlinebench.compile.cache.folder import make_cache_folder
from inlinebench.errors import UsageError
from inlinebench.options import Options
from inlinebench.results.result import Result
from inlinebench.scheduler.plan import Choice


def only_failed(choices: Sequence[Choice], options: Options) -> Sequence[Choice]:
    """Returns the choices that did not pass last time; all of them if there are none. Raises UsageError."""
    try:
        failed = _read(_file(options))
    except (OSError, ValueError) as error:
        raise UsageError(f"--last-failed: {error}; name the cache's folder with --cache, or clear the cache") from error
    chosen = [choice for choice in choices if str(choice[1]) in failed]
    if not chosen:
        say("--last-failed: none of these failed last time, so all are evaluated")
    return chosen or choices


def remember(results: Sequence[Result], options: Options) -> None:
    """Records which solutions did not pass. Earlier failures of solutions without a result stay.

    A cache that cannot be written costs only the record, and a line on stderr.
    """
    if options.solution_files or options.response is not None or not results:
        return
    fine: dict[str, bool] = {}
    for result in results:
        name = f"{result.problem}/{result.solution}"
        fine[name] = fine.get(name, True) and not result.verdict.is_failure
    try:
        _write(fine, _file(options))
    except OSError as error:
        say(f"--last-failed will ignore this run: {error.filename}: {error.strerror}")


def _write(fine: Mapping[str, bool], file: Path) -> None:
    failed = sorted((_read(file) - fine.keys()) | {name for name, passed in fine.items() if not passed})
    file.parent.mkdir(exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(json.dumps(failed), encoding="utf-8")
    part.replace(file)


def _file(options: Options) -> Path:
    """The file for these folders of problems and solutions."""
    folders = "\0".join(map(os.path.realpath, (options.problems, options.solutions)))
    name = hashlib.sha256(folders.encode()).hexdigest()
    return make_cache_folder(options.cache) / FAILED / name


def _read(file: Path) -> set[str]:
    """Returns the names in a file. One that was damaged counts as empty."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return set()
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
