"""Runs with problems whose own code hangs: `--problem-timeout` ends each step, and the other problems are evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from .hanging import SOLUTION, times_hung, write_problem
from .running import Run, run_eval

pytestmark = pytest.mark.slow

LIMIT_S = 4
"""The limit of each step, in seconds. An honest one may take two where torch's pages come from the disk again."""
SOLUTIONS = ("one", "two", "three")


@dataclass(frozen=True)
class Hanging:
    """A problem that hangs."""

    code: dict[str, str]
    """The statements at its steps."""
    step: str
    """The step that its results name."""
    times: int
    """How many times its code hangs in a run of three solutions."""


HANGING = {
    "a_module": Hanging({"module": "hang()"}, "loading the file", 1),
    "b_init": Hanging({"init": "hang()"}, "get_init_inputs()", 1),
    "c_constructor": Hanging({"constructor": "hang()"}, "the constructor Model(...)", 1),
    "d_inputs": Hanging({"inputs": "hang()"}, "get_inputs()", 1),
    "e_forward": Hanging({"forward": "hang()"}, "the reference's forward", 1),
    # Beside a solution, which might be to blame, a problem has a second chance.
    "f_fourth_inputs": Hanging({"inputs": "hang() if drawn == 4 else None"}, "get_inputs()", 2),
    "g_forward_in_judge": Hanging({"forward": "hang() if IN_JUDGE else None"}, "the reference's forward", 2),
}
PASSING = {
    "h_float64_in_judge": {"forward": "hang() if IN_JUDGE and x.dtype == torch.float64 else None"},
    # Together they exceed the limit.
    "i_slow": {"module": "time.sleep(1.2)", "init": "time.sleep(1.2)", "constructor": "time.sleep(1.2)",
               "inputs": "time.sleep(0.45)", "forward": "time.sleep(0.45)"},
    "j_harmless": {},
}
CONSTANT = "IN_JUDGE and x.dtype == torch.float32 and not x.std()"
WRONG = {
    "k_hangs_when_constant": f"hang() if {CONSTANT} else None",
    "l_dies_when_constant": f"ctypes.PyDLL(None)._exit(3) if {CONSTANT} else None",
}
"""Statements of references that only hang or die on inputs that nothing but an explanation uses."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hanging")
    (folder / "problems").mkdir()
    for name, code in {**{name: each.code for name, each in HANGING.items()}, **PASSING}.items():
        write_problem(folder / "problems", name, code)
        (folder / "solutions" / name).mkdir(parents=True)
        for solution in SOLUTIONS if name in HANGING else SOLUTIONS[:1]:
            (folder / "solutions" / name / f"{solution}.py").write_text(SOLUTION)
    for name, forward in WRONG.items():
        write_problem(folder / "problems", name, {"forward": forward})
        (folder / "solutions" / name).mkdir()
        (folder / "solutions" / name / "one.py").write_text(SOLUTION.replace("x * 2", "x * 3"))
    return folder


def run_in(folder: Path, *arguments: str, cache: Path, out: Path | None = None) -> Run:
    return run_eval(*arguments, "--problems", folder / "problems", "--solutions", folder / "solutions", "--device",
                    "cpu", "--problem-timeout", str(LIMIT_S), "--cache", cache, out=out)


@pytest.fixture(scope="module")
def run(cache: Path, folder: Path) -> Run:
    return run_in(folder, "--check", "--allow-library", "--min-calls", "2", cache=cache, out=folder / "out.jsonl")


@pytest.mark.parametrize("name", HANGING)
def test_all_solutions_of_a_problem_that_hangs_get_a_problem_error(run: Run, folder: Path, name: str) -> None:
    path, hanging = folder / "problems" / f"{name}.py", HANGING[name]
    for solution in SOLUTIONS:
        row = run.row(name, solution)
        assert row.verdict is Verdict.PROBLEM_ERROR, row.reason
        assert row.reason == (
            f"{path}: {hanging.step} takes longer than {LIMIT_S} s (--problem-timeout raises the limit)")
    assert times_hung(path) == hanging.times


@pytest.mark.parametrize(("name", "oracle"), [
    ("h_float64_in_judge", "reference"), ("i_slow", "float64"), ("j_harmless", "float64"),
])
def test_other_problems_of_the_run_pass(run: Run, name: str, oracle: str) -> None:
    row = run.row(name, "one")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.check is not None and row.check.oracle == oracle


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_that_cannot_be_explained_is_still_wrong(run: Run, folder: Path, name: str) -> None:
    row = run.row(name, "one")
    assert row.verdict is Verdict.WRONG, row.reason
    assert row.mismatch is not None
    assert times_hung(folder / "problems" / f"{name}.py") == (name == "k_hangs_when_constant")


def test_the_exit_status_shows_the_problem_errors(run: Run) -> None:
    assert run.status == 1 and "Traceback" not in run.out + run.err


def test_the_probe_finds_the_hang_if_nothing_is_built_in_advance(cache: Path, folder: Path, tmp_path: Path) -> None:
    again = run_in(folder, "a_module/one", "--check", cache=cache, out=tmp_path / "out.jsonl")
    assert f"loading the file takes longer than {LIMIT_S} s" in again.row("a_module", "one").reason


def test_building_only_reports_the_hang_and_builds_the_rest(cache: Path, folder: Path) -> None:
    built = run_in(folder, "a_module/one", "b_init/one", "e_forward", "--build-only", cache=cache)
    assert built.status == 1 and "Traceback" not in built.out + built.err
    assert "a_module/one: failed: " in built.out and f"loading the file takes longer than {LIMIT_S} s" in built.out
    assert "b_init/one: failed: " in built.out and f"get_init_inputs() takes longer than {LIMIT_S} s" in built.out
    assert built.out.count("requested no build") == len(SOLUTIONS)


def test_listing_does_not_run_problems(cache: Path, folder: Path) -> None:
    before = times_hung(folder / "problems" / "a_module.py")
    listed = run_in(folder, "--list", cache=cache)
    assert listed.status == 0 and "a_module" in listed.out
    assert times_hung(folder / "problems" / "a_module.py") == before
