"""Every file under `cheats/` must get its verdict, for its reason. Each says what it is (see any of them)."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.result import Result

from .running import TESTS, run_eval

TIMEOUT_S = 8


@dataclass(frozen=True)
class Cheat:
    path: Path
    problem: str
    expected: str
    caught_by: str
    needs_gpu: bool

    @classmethod
    def read(cls, path: Path) -> Cheat:
        """What a file declares, read as text: importing it would run it."""
        facts = {
            node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        needs_gpu = bool(facts.get("NEEDS_GPU")) or "cuda_sources" in path.read_text()
        return cls(path, facts["PROBLEM"], facts["EXPECTED"], facts["CAUGHT_BY"], needs_gpu)

    def evaluate(self, cache: Path, out: Path, *device: str) -> Result:
        run = run_eval(self.problem, "--solution", self.path, "--check", "--shape", "small", "--timeout",
                       str(TIMEOUT_S), "--cache", cache, *device, out=out)
        assert run.status == 1 and "Traceback" not in run.out + run.err
        return run.row(self.problem, self.path.stem)

    def assert_caught(self, row: Result) -> None:
        assert row.verdict.value == self.expected, row.reason
        assert self.caught_by in row.reason


CHEATS = [Cheat.read(path) for path in sorted((TESTS / "cheats").glob("*/*.py"))]


def by_name(cheat: Cheat) -> str:
    return f"{cheat.path.parent.name}/{cheat.path.stem}"


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if not cheat.needs_gpu], ids=by_name)
def test_a_cheat_is_caught(cheat: Cheat, cache: Path, tmp_path: Path) -> None:
    cheat.assert_caught(cheat.evaluate(cache, tmp_path / "out.jsonl", "--device", "cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat.needs_gpu], ids=by_name)
def test_a_cheat_is_caught_on_a_gpu(cheat: Cheat, cache: Path, tmp_path: Path) -> None:
    cheat.assert_caught(cheat.evaluate(cache, tmp_path / "out.jsonl", "--device", "cuda"))


def test_there_are_cheats() -> None:
    assert len(CHEATS) >= 5
