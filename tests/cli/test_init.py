"""`inlinebench init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_bad_inputs import inlinebench, last_line


@pytest.mark.slow
def test_what_init_writes_passes_on_the_cpu(tmp_path: Path, cache: Path) -> None:
    done = inlinebench(tmp_path, "init", "mine")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "next: inlinebench run mine"
    run = inlinebench(tmp_path, "check", "mine", "--device", "cpu", "--min-calls", "2", "--cache", str(cache))
    assert run.returncode == 0, run.stdout + run.stderr
    again = inlinebench(tmp_path, "init", "mine")
    assert again.returncode == 2 and "problems/mine.py already exists" in last_line(again)


@pytest.mark.gpu
def test_what_init_writes_passes_on_a_gpu(tmp_path: Path, cache: Path) -> None:
    inlinebench(tmp_path, "init", "mine")
    run = inlinebench(tmp_path, "run", "mine", "--device", "cuda", "--cache", str(cache))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("name", ["a/b", "1a", "a-b", "../x", "\u00e9"])
def test_a_name_that_is_not_one_is_refused(tmp_path: Path, name: str) -> None:
    done = inlinebench(tmp_path, "init", name)
    assert done.returncode == 2 and "such as row_sum" in last_line(done) and list(tmp_path.iterdir()) == []
