"""Tests of `--executor ray`: runs on the CPU, with workers of a Ray cluster that the run starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.results.jsonl import read
from inlinebench.results.result import Result, Verdict

from ..running import LONGEST_S, command, run_eval
from ..traces.files import SEGMENTS, copy_sets

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

COUNT = 40
PROBLEM = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n\n\n" \
    "def get_inputs():\n    return [torch.rand(4, 4)]\n\n\ndef get_init_inputs():\n    return []\n"
SOLUTION = "import time\n\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n" \
    "        time.sleep(0.05)\n        return x {operation} 2  # {number}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two problems with forty solutions; every fourth solution is wrong."""
    for name, body in (("twice", "x * 2"), ("twice_more", "x + x")):
        (tmp_path / "problems").mkdir(exist_ok=True)
        (tmp_path / "problems" / f"{name}.py").write_text(PROBLEM.format(body=body))
        (tmp_path / "solutions" / name).mkdir(parents=True)
        for number in range(COUNT // 2):
            text = SOLUTION.format(operation="+" if number % 4 == 3 else "*", number=number)
            (tmp_path / "solutions" / name / f"s{number}.py").write_text(text)
    return tmp_path


def arguments(folder: Path, cache: Path) -> list[str | Path]:
    return ["--problems", folder / "problems", "--check", "--min-calls", "3", "--allow-library", "--seed", "5",
            "--cache", cache]


def facts(results: list[Result]) -> dict[tuple[str, str], Result]:
    """Returns what must be equal between runs: all but times and logs."""
    return {(row.problem, row.solution): replace(row, timing=None, log=None, seconds=None) for row in results}


def working() -> list[int]:
    """Returns the process ids of the workers that are evaluating."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::Worker.evaluate"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_lost_worker_neither_loses_nor_repeats_a_result(folder: Path, cache: Path) -> None:
    out = folder / "ray.jsonl"
    line = command(*arguments(folder, cache), "--executor", "ray", "--devices", "cpu,cpu", "--out", out)
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as run:
        deadline = time.monotonic() + LONGEST_S
        while not (out.exists() and out.read_bytes().count(b"\n") >= 5 and working()):
            assert run.poll() is None and time.monotonic() < deadline, run.communicate()
            time.sleep(0.02)
        os.kill(working()[0], signal.SIGKILL)
        _, said = run.communicate(timeout=LONGEST_S)
    results = list(read(out))
    assert "a worker was lost" in said
    assert len(results) == len(facts(results)) == COUNT, said
    assert run.returncode == 1
    plain = run_eval(*arguments(folder, cache), "--device", "cpu", out=folder / "plain.jsonl").results
    assert facts(results) == facts(plain)
    assert {row.verdict for row in plain} == {Verdict.PASSED, Verdict.WRONG}
    assert not working()


def test_a_worker_without_the_source_files_gets_copies(folder: Path, cache: Path) -> None:
    """Runs in a separate process, because a judge is killed when the thread that started it ends."""
    check = """
import sys
from pathlib import Path
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.options import Options
from inlinebench.scheduler.identity import sources
from inlinebench.ray.sources import of_solution
from inlinebench.ray.worker import Worker
problem, solution = Path(sys.argv[1]), Path(sys.argv[2])
job = Evaluate("twice", "s", ProblemAt(problem, "full", {}), solution, "full")
texts = sources(problem), of_solution(job, Options(solutions=solution.parent.parent))
assert solution.parent / "deep" / "factor.txt" in texts[1]
for path in [*texts[0], *texts[1]]:
    path.unlink()
worker = Worker()
options = Options(device="cpu", check=True, allow_library=True, cache=Path(sys.argv[3]), min_calls=2)
(result,) = worker.evaluate(options, (job,), *texts)
print(result.verdict, result.reason)
worker.close()
"""
    solution = folder / "solutions" / "twice" / "s0.py"
    factor = "float((__import__('pathlib').Path(__file__).parent / 'deep' / ('factor' + '.txt')).read_text())"
    solution.write_text(solution.read_text().replace("* 2", f"* {factor}"))
    (solution.parent / "deep").mkdir()
    (solution.parent / "deep" / "factor.txt").write_text("2")
    done = subprocess.run([sys.executable, "-c", check, folder / "problems" / "twice.py", solution, cache], text=True,
                          capture_output=True, timeout=LONGEST_S, check=False, stdin=subprocess.DEVNULL)
    assert done.stdout.split() == ["passed"], done.stdout + done.stderr


def test_a_worker_gets_the_workloads_and_recorded_inputs_of_a_definition(tmp_path: Path, cache: Path) -> None:
    check = """
import shutil, sys
from pathlib import Path
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.options import Options
from inlinebench.scheduler.identity import sources
from inlinebench.ray.worker import Worker
problem = Path(sys.argv[1])
job = Evaluate("segment_sums", "@reference", ProblemAt(problem, "full", {}), None, "full")
texts = sources(problem)
shutil.rmtree(sys.argv[2])
worker = Worker()
options = Options(device="cpu", check=True, allow_library=True, cache=Path(sys.argv[3]), min_calls=2)
(result,) = worker.evaluate(options, (job,), texts, None)
print(result.verdict, result.reason)
worker.close()
"""
    sets = copy_sets(tmp_path / "sets")
    done = subprocess.run([sys.executable, "-c", check, sets / SEGMENTS, sets, cache], text=True, capture_output=True,
                          timeout=LONGEST_S, check=False, stdin=subprocess.DEVNULL)
    assert done.stdout.split() == ["passed"], done.stdout + done.stderr


@pytest.mark.parametrize(("arguments", "status", "said"), [
    (("--ray-address", "127.0.0.1:1"), 2, "--executor ray"),
    (("--executor", "ray", "--devices", "0,1"), 2, "Ray chooses"),
    (("--executor", "ray", "--device", "cuda:1"), 2, "Ray chooses"),
    (("--executor", "ray", "--profile"), 2, "one machine"),
])
def test_contradictory_options_are_rejected(arguments: tuple[str, ...], status: int, said: str) -> None:
    run = run_eval(*arguments)
    assert run.status == status and said in run.err
