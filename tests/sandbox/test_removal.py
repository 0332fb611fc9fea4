from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inlinebench.sandbox.removal import remove

DEEP = "import os\nfor _ in range(3000):\n    os.mkdir('moved-0')\n    os.chdir('moved-0')\nopen('file', 'w').close()"


@pytest.mark.parametrize("code", [
    DEEP,
    "import os; os.mkdir('a'); open('a/file', 'w').close(); os.chmod('a', 0o300); os.mkdir('b', 0); os.chmod('.', 0)",
    "import os; os.makedirs('a/b'); open('a/b/file', 'w').close(); os.chmod('a/b', 0); os.chmod('a', 0o500)",
    "import os; os.mkfifo('pipe'); os.symlink('/', 'root'); os.mkdir('a'); os.symlink('..', 'a/up')",
])
def test_a_folder_is_removed_whatever_is_in_it(tmp_path: Path, code: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    remove(folder)
    assert not folder.exists()


def test_the_target_of_a_link_stays(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    kept.mkdir(mode=0o750)
    (kept / "file").write_text("x")
    (folder / "below").mkdir(parents=True)
    os.symlink(kept, folder / "link")
    os.symlink(kept, folder / "below" / "link")
    remove(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "x" and kept.stat().st_mode & 0o777 == 0o750


def test_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "missing")
