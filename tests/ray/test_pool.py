"""Tests of `inlinebench.ray.Pool` with a cluster on this machine, and workers that evaluate on the CPU."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inlinebench import Client, Evaluator
from inlinebench.errors import UsageError
from inlinebench.ray import Pool
from inlinebench.results.result import Result, Verdict
from inlinebench.serve.request import from_json
from inlinebench.serve.reuse import Answered

from ..running import ROOT, TESTS

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

WORKERS, CPUS = 2, 1
PROBLEM = TESTS / "problems" / "view.py"
SOLUTION = "import os\nimport time\n\nimport torch\nfrom torch.utils.cpp_extension import load_inline\n\n\n" \
    "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {before}\n        return {value}\n"
RIGHT = SOLUTION.format(before="time.sleep(0.1)", value="x.transpose(0, 1)")
WRONG = RIGHT.replace("return", "return 1 +")
OF_EACH_KIND = {
    Verdict.PASSED: RIGHT,
    Verdict.WRONG: WRONG,
    Verdict.BUILD_FAILED: SOLUTION.format(
        before="load_inline('k', cpp_sources='int f() { return 1 }', functions=['f'])", value="x"),
    Verdict.CRASHED: SOLUTION.format(before="os.abort()", value="x"),
    Verdict.TIMED_OUT: SOLUTION.format(before="time.sleep(600)", value="x"),
    Verdict.INVALID: "x = 1\n",
}
POISON = """
import os, signal
from pathlib import Path

above = os.getppid()
while above > 1 and not Path(f"/proc/{above}/cmdline").read_bytes().startswith(b"ray::"):
    above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
if above > 1:
    os.kill(above, signal.SIGKILL)
""" + RIGHT
"""Kills the worker that evaluates it, which needs `trust`."""
GUIDE = ROOT / "docs/guide/clusters.md"
EXAMPLE = re.compile(r"```python\n(import asyncio\n.*?\nprint\(.*?)```\n\nIt prints `(.*?)`", re.DOTALL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Joins a cluster on this machine, as a trainer has done that calls `Pool`. Yields its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = ray.init(num_cpus=8, include_dashboard=False, object_store_memory=128 << 20, log_to_driver=False)
    yield found.address_info["gcs_address"]
    ray.shutdown()


@pytest.fixture(scope="module")
def settings(cache: Path) -> dict[str, Any]:
    return {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3, "timeout": 4.0, "seed": 5,
            "cache": cache}


@pytest.fixture(scope="module")
def pool(cluster: str, settings: dict[str, Any]) -> Iterator[Pool]:
    with Pool(workers=WORKERS, cpus=CPUS, **settings) as opened:
        yield opened
    assert ray.is_initialized()  # the cluster is the caller's


def evaluated(pool: Pool, solutions: Sequence[str], **settings: Any) -> list[Result]:
    async def all_of_them() -> list[Result]:
        return await asyncio.gather(*(pool.evaluate_async(PROBLEM, text, **settings) for text in solutions))

    return asyncio.run(all_of_them())


def facts(result: Result) -> Result:
    """Returns what must be equal between evaluations: all but times, logs and the folder that a text is written to."""
    return replace(result, timing=None, log=None, seconds=None, reason=re.sub(r"\S*/", "", result.reason))


def workers() -> set[int]:
    """Returns the process ids of the workers of Ray that evaluate, or wait for that."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::Worker"):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_verdicts_are_those_of_this_machine(pool: Pool, settings: dict[str, Any]) -> None:
    with Evaluator(**settings) as evaluator:
        here = [evaluator.evaluate(PROBLEM, text) for text in OF_EACH_KIND.values()]
    assert [result.verdict for result in here] == list(OF_EACH_KIND)
    there = evaluated(pool, list(OF_EACH_KIND.values()))
    assert [facts(result) for result in there] == [facts(result) for result in here]


def test_a_killed_worker_loses_no_evaluation_and_doubles_none(pool: Pool) -> None:
    right, wrong = (pool.evaluate(PROBLEM, text) for text in (RIGHT, WRONG))
    solutions = [f"{WRONG if number == 5 else RIGHT}# {number}\n" for number in range(10)]
    before = workers()

    async def with_a_kill() -> tuple[list[Result], list[int]]:
        done: list[int] = []

        async def one(number: int, text: str) -> Result:
            result = await pool.evaluate_async(PROBLEM, text)
            done.append(number)
            if len(done) == 3:
                os.kill(min(before), signal.SIGKILL)
            return result

        return await asyncio.gather(*(one(number, text) for number, text in enumerate(solutions))), done

    results, done = asyncio.run(with_a_kill())
    assert [replace(facts(result), key=None) for result in results] == [
        replace(facts(wrong if number == 5 else right), key=None) for number in range(len(solutions))]
    assert sorted(done) == list(range(len(solutions)))
    until(lambda: len(workers()) == WORKERS)
    assert min(before) not in workers()


def test_an_evaluation_that_kills_its_workers_is_given_up_and_the_others_are_not(pool: Pool) -> None:
    results = evaluated(pool, [RIGHT, POISON, WRONG, RIGHT, RIGHT, WRONG], trust=True)
    passed, wrong = Verdict.PASSED, Verdict.WRONG
    assert [each.verdict for each in results] == [passed, Verdict.INTERNAL_ERROR, wrong, passed, passed, wrong]
    assert results[1].reason.startswith("3 workers were lost during this evaluation")


def test_a_problem_and_a_setting_that_there_is_not_are_errors_of_the_caller(pool: Pool) -> None:
    with pytest.raises(UsageError, match="no_such_problem"):
        pool.evaluate("no_such_problem", RIGHT)
    with pytest.raises(UsageError, match="other"):
        pool.evaluate(PROBLEM, RIGHT, device="cuda")
    with pytest.raises(UsageError, match="open"):
        Pool().evaluate(PROBLEM, RIGHT)
    assert pool.evaluate(PROBLEM, response="There is none.").verdict is Verdict.INVALID


def test_equal_solutions_are_evaluated_once_if_that_is_asked_for(pool: Pool, settings: dict[str, Any]) -> None:
    def ask(reuse: bool) -> Answered:
        return pool.answer(from_json({"problem": str(PROBLEM), "source": RIGHT, "settings": settings, "reuse": reuse},
                                     remote=False))

    first, second = ask(reuse=True), ask(reuse=True)
    assert (first.reused, second.reused, ask(reuse=False).reused) == (False, True, False)
    assert second.result == first.result and first.result.verdict is Verdict.PASSED


def test_a_service_evaluates_on_the_cluster(
    cluster: str, cache: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("INLINEBENCH_CACHE", str(cache))
    line = [sys.executable, "-m", "inlinebench", "serve", "--backend", "ray", "--ray-address", cluster]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        said = service.stderr.readline()
        try:
            client = Client()
            found = [client.evaluate(PROBLEM, text, **settings).verdict for text in (RIGHT, WRONG)]
        finally:
            service.terminate()
    assert found == [Verdict.PASSED, Verdict.WRONG] and said.startswith("serving at "), said


def test_the_example_of_a_trainer_prints_its_rewards(cluster: str, cache: Path) -> None:
    ((code, shown),) = EXAMPLE.findall(GUIDE.read_text(encoding="utf-8"))
    environment = {**os.environ, "RAY_ADDRESS": cluster, "INLINEBENCH_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
                          env=environment)
    assert done.stdout.strip() == shown, done.stderr
