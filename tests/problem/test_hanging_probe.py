"""The time limit of a problem's own code in the probe, with a real probe process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.process import ProbeProcess
from inlinebench.problem.probe.records import CannotRun, ProbeResult
from inlinebench.process.launcher import Launcher

from ..hanging import times_hung, write_problem

LIMIT_S = 2.0
STEPS = {
    "module": "loading the file", "init": "get_init_inputs()", "constructor": "the constructor Model(...)",
    "inputs": "get_inputs()", "forward": "the reference's forward", "work": "work()",
}


@pytest.fixture(scope="module")
def process() -> Iterator[ProbeProcess]:
    launcher = Launcher()
    probe = ProbeProcess(launcher)
    probe.wake("cpu")
    probe.use("cpu", False)
    yield probe
    probe.close()
    launcher.close()


def probe(process: ProbeProcess, path: Path) -> ProbeResult | CannotRun:
    process.begin(ProblemAt(path, "full", {}), True)
    return process.finish(LIMIT_S, lambda text: None)


@pytest.mark.parametrize("step", [
    step if step == "forward" else pytest.param(step, marks=pytest.mark.slow) for step in STEPS
])
def test_a_step_that_hangs_is_named_after_one_try(process: ProbeProcess, tmp_path: Path, step: str) -> None:
    path = write_problem(tmp_path, "hangs", {step: "hang()"})
    assert probe(process, path) == CannotRun(
        f"{path}: {STEPS[step]} takes longer than 2 s (--problem-timeout raises the limit)", beyond_limits=True)
    assert times_hung(path) == 1


@pytest.mark.slow
def test_steps_that_are_slow_but_within_the_limit_pass(process: ProbeProcess, tmp_path: Path) -> None:
    path = write_problem(tmp_path, "slow", dict.fromkeys(STEPS, "time.sleep(0.45)"))
    assert len(STEPS) * 0.45 > LIMIT_S  # the limit is for each step
    found = probe(process, path)
    assert isinstance(found, ProbeResult) and found.float64 and found.variants


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "float64", "note"), [
    ("x.dtype == torch.float64", False, ""),
    ("torch._C._len_torch_dispatch_stack() > 0", True, "operations not counted"),
    ("(x < 0).all()", True, ""),
])
def test_a_trial_that_hangs_is_left_out(
    process: ProbeProcess, tmp_path: Path, condition: str, float64: bool, note: str
) -> None:
    path = write_problem(tmp_path, "hangs", {"forward": f"hang() if {condition} else None"})
    found = probe(process, path)
    assert isinstance(found, ProbeResult) and found.variants
    assert found.float64 is float64 and found.work.note.startswith(note) and bool(found.work.note) is bool(note)
    assert times_hung(path) == 1


def test_a_problem_without_oracle_does_not_run_in_float64(process: ProbeProcess, tmp_path: Path) -> None:
    path = write_problem(tmp_path, "hangs", {"forward": "hang() if x.dtype == torch.float64 else None"})
    process.begin(ProblemAt(path, "full", {}, oracle=False), True)
    found = process.finish(LIMIT_S, lambda text: None)
    assert isinstance(found, ProbeResult) and not found.float64 and times_hung(path) == 0


def test_what_a_hanging_module_has_started_is_killed(process: ProbeProcess, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    start = f"open({str(started)!r}, 'w').write(str(subprocess.Popen(['sleep', '3000']).pid))"
    assert isinstance(probe(process, write_problem(tmp_path, "hangs", {"module": f"{start}; hang()"})), CannotRun)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_step_that_takes_longer_than_a_second_is_shown(process: ProbeProcess, tmp_path: Path) -> None:
    shown: list[str] = []
    process.begin(ProblemAt(write_problem(tmp_path, "slow", {"inputs": "time.sleep(1.5)"}), "full", {}), False)
    assert isinstance(process.finish(60.0, shown.append), ProbeResult)
    assert "problem: get_inputs()" in shown
