"""The tutorial: its commands are run as they stand, on its files, and give the verdicts that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import ROOT

BLOCK = re.compile(r"(?:`([\w/.]+)`:\n\n)?```(python|diff|console)\n(.*?)```", re.DOTALL)
VERDICTS = re.compile(r"^\w+ +\w+ +\w+ +(?:passed|wrong)\b|^\w+/\w+ \(shape .*", re.MULTILINE)
"""Lines with a verdict: rows of the table, and heads of feedback."""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yields path, kind and text of what the tutorial writes and runs."""
    yield from BLOCK.findall((ROOT / "docs/tutorial.md").read_text(encoding="utf-8"))


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yields the commands of a block with what it shows below them."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def shell(folder: Path, command: str) -> str:
    """Runs a command of the tutorial, in which `inlinebench` is this checkout's."""
    line = command.replace("inlinebench", f"{sys.executable} -m inlinebench.cli.main", 1)
    done = subprocess.run(["bash", "-c", line if command.startswith("inlinebench") else command], cwd=folder,
                          capture_output=True, text=True, check=False, timeout=900, env=dict(os.environ))
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_tutorial_shows_what_its_commands_print(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INLINEBENCH_CACHE", str(cache))
    ran = 0
    for path, kind, text in blocks():
        if kind == "python":
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        elif kind == "diff":
            subprocess.run(["git", "apply", "-p0"], input=text, text=True, cwd=tmp_path, check=True)
        else:
            for command, shown in commands(text):
                found, wanted = shell(tmp_path, command), VERDICTS.findall(shown)
                assert VERDICTS.findall(found) == wanted if wanted else found == shown, command
                ran += 1
    assert ran == 10
