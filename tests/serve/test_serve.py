"""Tests of `inlinebench.evaluate`. Each test has its own server."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from inlinebench import evaluate
from inlinebench.errors import NoDevice, ServerDied, UsageError
from inlinebench.results.result import Result, Verdict
from inlinebench.serve.endpoint import endpoint
from inlinebench.wire.processes import descendants

from ..hanging import SOLUTION, write_problem
from ..running import TESTS

PROBLEM = TESTS / "problems" / "view.py"
RIGHT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n"
HANGS = RIGHT.format(body="__import__('time').sleep(600)")
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives the test its own runtime folder, and kills its servers at the end."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("INLINEBENCH_IDLE", "30")
    yield
    for pid in servers():
        os.kill(pid, signal.SIGKILL)


def servers() -> list[int]:
    """Returns the process ids of the servers at this test's endpoint."""
    where = os.fsencode(endpoint().folder)
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"inlinebench.serve.server" in line and where in line:
            found.append(int(entry.name))
    return found


def judges() -> list[int]:
    """Returns the process ids of all servers' judges, without the processes that were forked from judges."""
    return [pid for server in servers() for pid in descendants(server) if is_judge(pid)
            and not is_judge(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]))]


def is_judge(pid: int) -> bool:
    return b"\0inlinebench.judge\0" in Path(f"/proc/{pid}/cmdline").read_bytes()


def ask(body: str, cache: Path, **settings: object) -> Result:
    common = {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3, "cache": cache}
    return evaluate(PROBLEM, RIGHT.format(body=body), **{**common, **settings})


def right_body() -> str:
    text = PROBLEM.read_text()
    return text[text.index("return ") + 7:].partition("\n")[0]


def until(true: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_calls_share_one_judge(cache: Path) -> None:
    first = ask(right_body(), cache)
    assert first.verdict is Verdict.PASSED, first.reason
    there = judges()
    assert len(there) == 1
    assert ask(right_body() + " + 1", cache).verdict is Verdict.WRONG
    assert ask(right_body(), cache).key == first.key
    both = ask(right_body(), cache, backward=True)
    assert (both.verdict, both.backward, both.shape) == (Verdict.PASSED, True, "full+backward"), both.reason
    assert both.timing is None or len(both.timing.passes) == 2
    assert first.backward is None and both.key != first.key
    assert judges() == there


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "x = 1", "I can't help with that."])
def test_a_source_text_without_a_model_is_an_invalid_solution(cache: Path, text: str) -> None:
    assert evaluate(PROBLEM, text, device="cpu", check=True, cache=cache).verdict is Verdict.INVALID


def test_a_missing_file_is_an_error_and_not_a_source_text(cache: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        evaluate(PROBLEM, "no_such_solution.py", device="cpu", cache=cache)


@pytest.mark.parametrize(("settings", "said"), [
    ({"min_calls": "many"}, "min_calls='many': write a positive integer"),
    ({"min_calls": -1}, "min_calls=-1: write a positive integer"),
    ({"min_calls": True}, "min_calls=True: write a positive integer"),
    ({"check": "yes"}, "check='yes': write True or False"),
    ({"shapes": "small"}, "shapes='small': write names"),
    ({"precision": "fp8"}, "precision='fp8': write one of fp32, fp16, bf16"),
    ({"device": "gpu"}, "device='gpu': write auto, cuda, cuda:N or cpu"),
    ({"timeout": float("nan")}, "timeout=nan: write a positive number of seconds, at most 1000000"),
    ({"constants": {"N": 3}, "shapes": ("small",)}, "constants and shapes exclude each other"),
    ({"sanitize": "memcheck"}, "sanitize needs a GPU"),
])
def test_unusable_settings_are_named_before_a_server_starts(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as raised:
        evaluate(PROBLEM, RIGHT.format(body="x"), **{"device": "cpu", **settings})
    assert "--" not in str(raised.value) and servers() == []


def test_old_names_of_settings_work_with_a_warning() -> None:
    for name, present in {"calls": "min_calls", "most_calls": "max_calls"}.items():
        with (pytest.warns(FutureWarning, match=f"{name} is {present} now"),
              pytest.raises(UsageError, match=f"{present}=0: write a positive integer")):
            evaluate(PROBLEM, RIGHT.format(body="x"), device="cpu", **{name: 0})


@pytest.mark.parametrize(("name", "said"), [
    ("min_cals", "did you mean 'min_calls'"), ("out", "it is an option of `inlinebench run`"), ("zzz",
    "has no setting 'zzz'"),
])
def test_a_setting_that_there_is_not_is_an_unexpected_argument(name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        evaluate(PROBLEM, RIGHT.format(body="x"), **{name: 1})


def test_a_solution_is_a_path_or_a_text() -> None:
    with pytest.raises(TypeError, match="solution must be a path or the source text, not NoneType"):
        evaluate(PROBLEM, None)  # type: ignore[arg-type]


def test_a_text_that_cannot_be_encoded_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="the source is not text: surrogates not allowed at character 2"):
        evaluate(PROBLEM, "# \ud800\nclass ModelNew: pass\n")


@pytest.mark.slow
def test_constants_replace_those_of_the_problem_and_paths_may_be_text(cache: Path) -> None:
    result = evaluate("axpy", TESTS / "solutions_slow/axpy/stock.py", device="cpu", check=True, min_calls=2,
                      cache=str(cache), problems=str(TESTS / "problems"), constants={"N": 5}, allow_library=True)
    assert (result.verdict, result.shape) == (Verdict.PASSED, "N=5"), result.reason


@pytest.mark.slow
def test_messages_of_the_server_name_fields_as_well(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"shapes tiny: .* declares no such shape"):
        evaluate(PROBLEM, RIGHT.format(body="x"), device="cpu", cache=cache, shapes=("tiny",))


@pytest.mark.slow
def test_a_problem_that_hangs_in_the_judge_leaves_the_server_usable(cache: Path, tmp_path: Path) -> None:
    path = write_problem(tmp_path, "hangs", {"forward": "hang() if IN_JUDGE else None"})
    row = evaluate(path, SOLUTION, device="cpu", check=True, allow_library=True, problem_timeout=2.0, cache=cache)
    assert row.verdict is Verdict.PROBLEM_ERROR and "the reference's forward takes longer than 2 s" in row.reason
    assert ask(right_body(), cache, problem_timeout=2.0).verdict is Verdict.PASSED


@pytest.mark.slow
def test_threads_and_processes_share_one_server(cache: Path) -> None:
    bodies = [right_body() + extra for extra in ("", " + 1", " * 2", "", " + 0", "")]
    expected = [Verdict.PASSED, Verdict.WRONG, Verdict.WRONG, Verdict.PASSED, Verdict.PASSED, Verdict.PASSED]
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(3, mp_context=spawn) as processes:
        asked: list[Future[Result]] = [(threads, processes)[index % 2].submit(ask, body, cache)
                                       for index, body in enumerate(bodies)]
        assert [each.result().verdict for each in asked] == expected
    assert len(servers()) == 1 and len(judges()) == 1


@pytest.mark.slow
def test_other_settings_get_other_judges_and_idle_ones_are_closed(cache: Path) -> None:
    for calls in (2, 3, 4):
        assert ask(right_body(), cache, min_calls=calls).check.calls == calls + 5  # type: ignore[union-attr]
    until(lambda: len(judges()) == 2)


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "settings", "error", "said"), [
    ("no_such_problem", {}, UsageError, "no problem"), (str(PROBLEM), {"device": "cuda:63"}, NoDevice, "GPU|CUDA"),
    (str(PROBLEM), {"shapes": ("tiny",)}, UsageError, "no such shape"),
    (str(PROBLEM), {"shapes": ("full", "full")}, UsageError, "select 2"),
])
def test_usage_and_device_errors_are_raised_and_the_server_survives(
    cache: Path, problem: str, settings: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        evaluate(problem, RIGHT.format(body="x"), **{"device": "cpu", "cache": cache, **settings})
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    assert len(servers()) == 1


@pytest.mark.slow
def test_a_dead_server_is_an_error_and_the_next_call_starts_another(cache: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(evaluate, PROBLEM, HANGS, device="cpu", check=True, cache=cache)
        until(judges)
        before = servers()
        os.kill(before[0], signal.SIGKILL)
        with pytest.raises(ServerDied, match="during the evaluation"):
            asked.result()
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    assert set(servers()).isdisjoint(before)


@pytest.mark.slow
def test_an_idle_server_ends_and_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INLINEBENCH_IDLE", "1")
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    below = [pid for server in servers() for pid in descendants(server)]
    assert below
    until(lambda: not servers())
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert not endpoint().socket.exists()
    assert ask(right_body(), cache).verdict is Verdict.PASSED


def test_a_client_without_the_key_is_refused(cache: Path) -> None:
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    with endpoint().address() as address, pytest.raises((AuthenticationError, EOFError)):
        Client(address, family="AF_UNIX", authkey=b"guessed")
    assert endpoint().key.stat().st_mode & 0o077 == 0
    assert ask(right_body(), cache).verdict is Verdict.PASSED


@pytest.mark.slow
def test_the_folder_may_be_longer_than_a_socket_path(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setenv("INLINEBENCH_IDLE", "1")
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    until(lambda: not servers())
    assert not endpoint().socket.exists() and endpoint().log.read_text() == ""


def test_a_folder_that_other_users_can_access_is_refused() -> None:
    folder = endpoint().folder
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="can be accessed by other users"):
        endpoint()
    folder.chmod(0o700)
