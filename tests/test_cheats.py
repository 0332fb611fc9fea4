"""Every file under `cheats/` must get its verdict, for its reason. Each says what it is (see any of them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.result import Result

from .planted import Planted
from .running import TESTS, run_eval

TIMEOUT_S = 8
CHEATS = [Planted.read(path) for path in sorted((TESTS / "cheats").glob("*/*.py"))]


def evaluate(cheat: Planted, cache: Path, out: Path, *device: str) -> Result:
    run = run_eval(cheat.problem, "--solution", cheat.path, "--check", "--shape", "small", "--timeout",
                   str(TIMEOUT_S), "--cache", cache, *device, out=out)
    assert run.status == 1 and "Traceback" not in run.out + run.err
    return run.row(cheat.problem, cheat.path.stem)


def by_name(cheat: Planted) -> str:
    return f"{cheat.path.parent.name}/{cheat.path.stem}"


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if not cheat.needs_gpu], ids=by_name)
def test_a_cheat_is_caught(cheat: Planted, cache: Path, tmp_path: Path) -> None:
    cheat.assert_caught(evaluate(cheat, cache, tmp_path / "out.jsonl", "--device", "cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat.uses_cuda], ids=by_name)
def test_a_cheat_is_caught_on_a_gpu(cheat: Planted, cache: Path, tmp_path: Path) -> None:
    cheat.assert_caught(evaluate(cheat, cache, tmp_path / "out.jsonl", "--device", "cuda"))


def test_there_are_cheats() -> None:
    assert len(CHEATS) >= 5
