"""Solution files that must get a certain verdict, and say in constants what for: planted bugs, cheats, honest ones.

Many at a time are evaluated in one run, as in a real suite, so whatever one of them does must leave the others alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench.records import catalog
from inlinebench.records.result import Result

from .running import ROOT, TESTS, run_eval

MOST_OF_A_LOG = 3000
HANG_S, PATIENCE_S = 8, 60
"""Time limits of one evaluation, for those that are to hang and for all others."""
CANARY = {"INLINEBENCH_CANARY_TOKEN": "worthless"}
"""A variable that no solution must see."""
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
        assert (row.verdict.value, row.reason) == (self.expected, row.reason), (row.log or "")[-MOST_OF_A_LOG:]
        assert self.caught_by in row.reason


def read_all(pattern: str) -> list[Planted]:
    """Every file below tests/ that matches and declares a problem."""
    found = [path for path in sorted(TESTS.glob(pattern)) if "\nPROBLEM = " in path.read_text()]
    return [Planted.read(path) for path in found]


def evaluate_all(cases: Sequence[Planted], folder: Path, *arguments: str | Path) -> dict[str, Result]:
    """Evaluates all cases in as few runs as their shapes and limits need; gives results by the cases' names."""
    if not cases:
        return {}
    problems = _link(folder / "problems", [path for place in PROBLEMS for path in place.glob("*.py")])
    shapes = {name: problem.shapes for name, problem in catalog.read(problems, folder).problems.items()}
    groups: dict[tuple[str, int], list[Planted]] = {}
    for case in cases:
        shape = case.shape if case.shape in shapes[case.problem] else catalog.FULL
        groups.setdefault((shape, HANG_S if case.expected == "timed_out" else PATIENCE_S), []).append(case)

    def run_group(key: tuple[str, int]) -> list[Result]:
        (shape, timeout), group = key, groups[key]
        solutions = folder / f"solutions-{shape}-{timeout}"
        for case in group:
            _link(solutions / case.problem, [case.path], case.name)
        run = run_eval("--problems", problems, "--solutions", solutions, "--shape", shape, "--timeout", str(timeout),
                       *arguments, out=folder / f"{shape}-{timeout}.jsonl", environment=CANARY)
        assert "Traceback" not in run.out + run.err, run.err
        assert len(run.results) == len(group), run.err
        return run.results

    return {row.solution: row for key in groups for row in run_group(key)}


def _link(folder: Path, files: Iterable[Path], name: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        (folder / f"{name or path.stem}.py").symlink_to(path)
    return folder
