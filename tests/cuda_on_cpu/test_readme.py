"""The README's example, as it is written, does what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cuda_on_cpu

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cuda_on_cpu.__file__).parents[1])}
README = Path(cuda_on_cpu.__file__).with_name("README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Returns the only block of code in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.slow
def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    (tmp_path / "reverse.cu").write_text(block("cuda"))
    done = subprocess.run([sys.executable, "-c", block("python")], cwd=tmp_path, env=ENVIRONMENT, text=True,
                          capture_output=True, check=False)
    assert done.stdout == block("text"), done.stderr


def test_the_readme_names_every_public_name() -> None:
    table = README.partition("## The public names")[2].partition("##")[0]
    assert set(cuda_on_cpu.__all__) <= set(re.findall(r"`(\w+)`", table))


def test_torch_is_imported_only_for_the_names_that_need_it() -> None:
    code = ("import sys, cuda_on_cpu\n"
            "assert 'torch' not in sys.modules\n"
            "cuda_on_cpu.install\n"
            "assert 'torch' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
