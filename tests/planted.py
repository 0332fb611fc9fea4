"""Solution files that must get a verdict other than `passed`, and say in constants which, and for what reason."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from harness.result import Result


@dataclass(frozen=True)
class Planted:
    """One file: what it declares as PROBLEM, EXPECTED and CAUGHT_BY, and whether NEEDS_GPU is true."""

    path: Path
    problem: str
    expected: str
    caught_by: str
    needs_gpu: bool

    @classmethod
    def read(cls, path: Path) -> Planted:
        """What a file declares, read as text: importing it would run it."""
        facts = {
            node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        return cls(path, facts["PROBLEM"], facts["EXPECTED"], facts["CAUGHT_BY"], bool(facts.get("NEEDS_GPU")))

    @property
    def uses_cuda(self) -> bool:
        return "cuda_sources" in self.path.read_text()

    def assert_caught(self, row: Result) -> None:
        assert row.verdict.value == self.expected, row.reason
        assert self.caught_by in row.reason
