"""Evaluates solution files that declare their expected verdict in constants: planted bugs, cheats and honest solutions.

Many files are evaluated in one run, as in a real suite, so no file may affect the results of the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench import catalog
from inlinebench.results.result import Result

from .running import ROOT, TESTS, run_eval

MOST_OF_A_LOG = 3000
OR = " or "
SHARE, SLACK_MS = 0.05, 0.005
"""How much shorter than the true time a reported one may be: the larger of a share and ms."""
HANG_S, PATIENCE_S = 8, 60
"""Time limits of one evaluation in seconds: for files that are expected to hang, and for all others."""
CANARY = {"INLINEBENCH_CANARY_TOKEN": "worthless"}
"""An environment variable that no solution may see."""
PROBLEMS = (ROOT / "problems", TESTS / "problems")


@dataclass(frozen=True)
class Planted:
    """One file and the constants that it declares."""

    path: Path
    """The file."""
    problem: str
    """PROBLEM: the name of its problem."""
    expected: str = "passed"
    """EXPECTED: the verdict, or several with " or " between them, if chance decides."""
    caught_by: str = ""
    """CAUGHT_BY: a part of the reason, or several as in EXPECTED."""
    true_ms: float = 0.0
    """TRUE_MS: how long a call takes at least, in ms. A cheat gains nothing if it passes with this time."""
    shape: str = "small"
    """SHAPE: the shape to evaluate, or `full` if the problem does not have this shape."""
    needs_gpu: bool = False
    """NEEDS_GPU: whether it is evaluated only on a GPU."""
    needs_sandbox: bool = False
    """NEEDS_SANDBOX: whether its test is skipped without a whole sandbox."""
    bottleneck: str = ""
    """BOTTLENECK: the bottleneck that is named on a GPU."""
    needs_triton: bool = False
    """NEEDS_TRITON: whether it is evaluated only with Triton."""

    @classmethod
    def read(cls, path: Path) -> Planted:
        """Reads the constants from the text of a file, because importing the file would run it."""
        facts = {
            node.targets[0].id.lower(): ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        return cls(path, **{name: value for name, value in facts.items() if name in cls.__dataclass_fields__})

    @property
    def name(self) -> str:
        """The names of its folder and of the file."""
        return f"{self.path.parent.name}-{self.path.stem}"

    def is_caught(self, row: Result) -> bool:
        """Whether a result has the expected verdict and reason, or the true time."""
        if row.timing is not None and self.true_ms:
            return row.timing.solution_ms.median >= self.true_ms - max(SHARE * self.true_ms, SLACK_MS)
        reasons = self.caught_by.split(OR)
        return row.verdict.value in self.expected.split(OR) and any(reason in row.reason for reason in reasons)

    def assert_caught(self, row: Result) -> None:
        """Asserts what `is_caught` returns."""
        assert self.is_caught(row), f"{row.verdict}: {row.reason}\n{(row.log or '')[-MOST_OF_A_LOG:]}"


def read_all(pattern: str) -> list[Planted]:
    """Reads every file below tests/ that matches a glob pattern and declares a problem."""
    found = [path for path in sorted(TESTS.glob(pattern)) if "\nPROBLEM = " in path.read_text()]
    return [Planted.read(path) for path in found]


def evaluate_all(cases: Sequence[Planted], folder: Path, *arguments: str | Path) -> dict[str, Result]:
    """Evaluates all cases, in one run for each shape and time limit. Returns the results by the names of the cases."""
    if not cases:
        return {}
    problems = _link(folder / "problems", [path for parent in PROBLEMS for path in parent.glob("*.py")])
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
