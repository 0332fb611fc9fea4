"""Tests of the reports of `--build-only` and their table."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.builds.report import BuildReport, State
from inlinebench.builds.request import BuildOutcome
from inlinebench.report.terminal.builds import exit_status, table
from inlinebench.results.result import Verdict
from inlinebench.scheduler.build_report import LATER, NOTHING, summed_up
from inlinebench.scheduler.prebuild import Prebuilt

LIBRARY = BuildOutcome(Path("/cache/a.so"), seconds=2.0, headers="slim")
CACHED = BuildOutcome(Path("/cache/b.so"), cached=True, headers="full, because with slim ones: x")
BROKEN = BuildOutcome(None, "cpp_sources:3: error: no such thing", log="...")
UNSUPPORTED = BuildOutcome(None, "inline PTX cannot run here", verdict=Verdict.SKIPPED)


def traced(code: str, file: str = "/home/cuda/solutions/a.py") -> str:
    return f'Traceback (most recent call last):\n  File "{file}", line 3, in __init__\n    {code}\nAssertionError\n'


def state_of(*parts: Prebuilt, for_gpu: bool = True) -> tuple[State, str]:
    built = summed_up("p", "s", parts, for_gpu=for_gpu)
    return built.state, built.reason


def test_a_solution_with_all_its_libraries_is_built() -> None:
    assert state_of(Prebuilt((LIBRARY, CACHED))) == (State.BUILT, "")
    assert state_of(Prebuilt()) == (State.BUILT, NOTHING)


def test_a_solution_that_handles_a_failed_build_is_built() -> None:
    state, reason = state_of(Prebuilt((BROKEN, LIBRARY)))
    assert state is State.BUILT and BROKEN.reason in reason


def test_the_compilers_error_takes_precedence_over_the_solutions_exception() -> None:
    failure = "RuntimeError: the extension x was not built: CUDA says no (a.py, line 3)"
    assert state_of(Prebuilt((LIBRARY, BROKEN), failure)) == (State.FAILED, BROKEN.reason)
    assert state_of(Prebuilt((UNSUPPORTED,), failure), for_gpu=False) == (State.SKIPPED, UNSUPPORTED.reason)


@pytest.mark.parametrize("failure", [
    "RuntimeError: No CUDA GPUs are available (a.py, line 3)",
    "AssertionError: Torch not compiled with CUDA enabled (a.py, line 3)",
    "RuntimeError: Found no NVIDIA driver on your system. (a.py, line 3)",
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    "RuntimeError: 0 active drivers ([]). There should only be one.",
])
def test_a_constructor_that_needs_a_gpu_is_built_later(failure: str) -> None:
    assert state_of(Prebuilt((LIBRARY,), failure)) == (State.LATER, LATER)
    assert state_of(Prebuilt((LIBRARY,), failure), for_gpu=False) == (State.FAILED, failure)


def test_the_line_that_raised_may_show_that_a_gpu_is_needed() -> None:
    part = Prebuilt((), "AssertionError (a.py, line 3)", traced("assert torch.cuda.is_available()"))
    assert state_of(part)[0] is State.LATER


@pytest.mark.parametrize(("failure", "log"), [
    ("ZeroDivisionError: division by zero (a.py, line 3)", traced("1 / 0")),
    ("ZeroDivisionError: division by zero (a.py, line 3)", "the GPU is warm\n" + traced("1 / 0")),
    ("SyntaxError: invalid syntax (a.py, line 3)", traced("torch.cuda.(")),
    ("ModuleNotFoundError: No module named 'cuda' (a.py, line 3)", traced("import cuda")),
    ("NameError: name 'cuda' is not defined (a.py, line 3)", traced("cuda.x")),
    ("the solution was killed by SIGSEGV", ""),
])
def test_a_constructor_that_fails_on_any_machine_is_a_failure(failure: str, log: str) -> None:
    assert state_of(Prebuilt((LIBRARY,), failure, log)) == (State.FAILED, failure)


def test_of_several_constructions_the_worst_state_counts_and_builds_are_unique() -> None:
    assert state_of(Prebuilt((LIBRARY,)), Prebuilt((), "ValueError: no"))[0] is State.FAILED
    assert state_of(Prebuilt((), "RuntimeError: No CUDA GPUs"), Prebuilt((LIBRARY,)))[0] is State.LATER
    assert summed_up("p", "s", [Prebuilt((LIBRARY,)), Prebuilt((LIBRARY, CACHED))], for_gpu=True).builds == (
        LIBRARY, CACHED)


def test_the_table_has_a_row_for_each_solution_and_a_line_for_each_reason() -> None:
    rows = [
        BuildReport("b", "two", State.BUILT, builds=(LIBRARY, CACHED)),
        BuildReport("a", "one", State.FAILED, "bad\nlog", (BROKEN,)),
        BuildReport("b", "none", State.LATER, LATER), BuildReport("b", "old", State.BUILT, builds=(CACHED,)),
    ]
    assert table(rows, ["a note"]).splitlines() == [
        "problem    solution    build      seconds  cached    headers",
        "---------  ----------  -------  ---------  --------  ----------",
        "a          one         failed         0.0  —         —",
        "b          none        later            —  —         —",
        "b          old         built          0.0  yes       full",
        "b          two         built          2.0  1 of 2    slim, full",
        "",
        "a/one: failed: bad",
        f"b/none: later: {LATER}",
        "",
        "a note",
    ]


def test_only_failures_fail_the_run_unless_strict() -> None:
    fine = [BuildReport("p", "s", state) for state in (State.BUILT, State.LATER, State.SKIPPED)]
    assert (exit_status(fine, False), exit_status(fine, True)) == (0, 1)
    assert exit_status([*fine, BuildReport("p", "s", State.FAILED, "no")], False) == 1
