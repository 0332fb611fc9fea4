"""Solution files that must get a certain verdict, and say in constants what for: planted bugs, cheats, honest ones.

Many at a time are evaluated in one run, as in a real suite, so whatever one of them does must leave the others alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import catalog
from harness.result import Result

from .running import ROOT, TESTS, run_eval

PROBLEMS = (ROOT / "problems", TESTS / "problems")


@dataclass(frozen=True)
class Planted:
    """One file and what it declares: PROBLEM, and where it must not pass, EXPECTED and CAUGHT_BY; SHAPE, NEEDS_*."""

    path: Path
    problem: str
    expected: str = "passed"
    caught_by: str = ""
    shape: str = "small"
    needs_gpu: bool = False
    needs_sandbox: bool = False
    needs_triton: bool = False

    @classmethod
    def read(cls, path: Path) -> Planted:
        """What a file declares, read as text: importing it would run it."""
        facts = {
            node.targets[0].id.lower(): ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        return cls(path, **{name: value for name, value in facts.items() if name in cls.__dataclass_fields__})

    @property
    def name(self) -> str:
        """Its family and its own name."""
        return f"{self.path.parent.name}-{self.path.stem}"

    @property
    def uses_cuda(self) -> bool:
        return "cuda_sources" in self.path.read_text()

    def assert_caught(self, row: Result) -> None:
        """The verdict, and its reason."""
        assert (row.verdict.value, row.reason) == (self.expected, row.reason), row.log
        assert self.caught_by in row.reason


def read_all(pattern: str) -> list[Planted]:
    """Every file below tests/ that matches and declares a problem."""
    found = [path for path in sorted(TESTS.glob(pattern)) if "\nPROBLEM = " in path.read_text()]
    return [Planted.read(path) for path in found]


def evaluate_all(cases: Sequence[Planted], folder: Path, *arguments: str | Path) -> dict[str, Result]:
    """Evaluates all cases in as few runs as their shapes need; results by the cases' names."""
    problems = _link(folder / "problems", [path for place in PROBLEMS for path in place.glob("*.py")])
    shapes = {name: problem.shapes for name, problem in catalog.read(problems, folder).problems.items()}
    results = {}
    for shape in sorted({_shape(case, shapes) for case in cases}):
        group = [case for case in cases if _shape(case, shapes) == shape]
        solutions = folder / f"solutions-{shape}"
        for case in group:
            _link(solutions / case.problem, [case.path], case.name)
        run = run_eval("--problems", problems, "--solutions", solutions, "--shape", shape, *arguments,
                       out=folder / f"{shape}.jsonl")
        assert "Traceback" not in run.out + run.err, run.err
        assert len(run.results) == len(group), run.err
        results.update({row.solution: row for row in run.results})
    return results


def _shape(case: Planted, shapes: dict[str, tuple[str, ...]]) -> str:
    return case.shape if case.shape in shapes[case.problem] else catalog.FULL


def _link(folder: Path, files: Iterable[Path], name: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        (folder / f"{name or path.stem}.py").symlink_to(path)
    return folder
