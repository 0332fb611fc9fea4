from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that a sandboxed program may write."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder
