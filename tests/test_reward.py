"""The guide about rewards: its example runs as it stands, and prints what the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import ROOT

GUIDE = ROOT / "docs/guide/reward.md"
EXAMPLE = re.compile(r"```python\n(.*?\nprint\(.*?)```\n\nIt prints `(.*?)`", re.DOTALL)
"""The example has code fences in its text, so its end is what follows it."""


@pytest.fixture
def service(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("INLINEBENCH_CACHE", str(cache))
    with subprocess.Popen([sys.executable, "-m", "inlinebench", "serve"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stderr.readline().startswith("serving at ")
        yield
        process.terminate()


@pytest.mark.slow
@pytest.mark.usefixtures("service")
def test_the_example_prints_its_rewards() -> None:
    (found,) = EXAMPLE.findall(GUIDE.read_text(encoding="utf-8"))
    code, shown = found
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (shown, "")
