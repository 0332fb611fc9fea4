"""Evaluations by Python callers: in their own process, and by a service. Each test has its own runtime folder."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench import Client, Evaluator, evaluate
from inlinebench.cli.serve import _callers
from inlinebench.cli.serve import main as serve
from inlinebench.errors import NoDevice, ServerDied, UsageError
from inlinebench.results.result import Result, Verdict
from inlinebench.serve.journal import Journal
from inlinebench.serve.openapi import openapi
from inlinebench.serve.place import SOCKET, folder, turn
from inlinebench.serve.request import Request, from_json, request, to_json
from inlinebench.serve.reuse import Answered
from inlinebench.serve.work import MOST_ATTEMPTS, USER, QueueFull, WorkQueue
from inlinebench.wire.processes import descendants

from ..hanging import SOLUTION, write_problem
from ..running import TESTS

PROBLEM = TESTS / "problems" / "view.py"
RIGHT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n"
HANGS = RIGHT.format(body="__import__('time').sleep(600)")
PATIENCE_S = 60
Start = Callable[..., int]


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a service with further arguments, and returns its process id. All are killed at the end."""
    begun: list[subprocess.Popen[bytes]] = []

    def started(*arguments: str) -> int:
        with (tmp_path / "service.log").open("ab") as log:
            begun.append(subprocess.Popen([sys.executable, "-m", "inlinebench", "serve", *arguments], stderr=log))
        until(lambda: begun[-1].poll() is not None or answers())
        assert begun[-1].poll() is None, (tmp_path / "service.log").read_text()
        return begun[-1].pid

    yield started
    for process in begun:
        process.kill()
        process.wait()


def answers() -> bool:
    try:
        return bool(Client(patience=0).health())
    except ServerDied:
        return False


def judges(above: int) -> list[int]:
    """Returns the process ids of the judges below a process, without the processes that were forked from judges."""
    return [pid for pid in descendants(above) if is_judge(pid)
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


def test_without_a_service_a_call_leaves_nothing_behind(cache: Path) -> None:
    assert ask(right_body(), cache).verdict is Verdict.PASSED
    assert judges(os.getpid()) == []


def test_calls_of_an_evaluator_share_one_judge(cache: Path) -> None:
    with Evaluator(device="cpu", check=True, allow_library=True, min_calls=3, cache=cache) as evaluator:
        def ask_it(body: str, **settings: Any) -> Result:
            return evaluator.evaluate(PROBLEM, RIGHT.format(body=body), **settings)

        first = ask_it(right_body())
        assert first.verdict is Verdict.PASSED, first.reason
        there = judges(os.getpid())
        assert len(there) == 1
        assert ask_it(right_body() + " + 1").verdict is Verdict.WRONG
        assert ask_it(right_body()).key == first.key
        both = ask_it(right_body(), backward=True)
        assert (both.verdict, both.backward, both.shape) == (Verdict.PASSED, True, "full+backward"), both.reason
        assert both.timing is None or len(both.timing.passes) == 2
        assert first.backward is None and both.key != first.key
        assert judges(os.getpid()) == there
    assert judges(os.getpid()) == []


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
def test_unusable_settings_are_named_before_anything_starts(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as raised:
        evaluate(PROBLEM, RIGHT.format(body="x"), **{"device": "cpu", **settings})
    assert "--" not in str(raised.value) and judges(os.getpid()) == []


def test_lists_are_settings_as_tuples_are() -> None:
    asked = [request(PROBLEM, "text\n", {"device": "cpu", "shapes": kind(("small", "odd"))}) for kind in (list, tuple)]
    assert asked[0] == asked[1] and asked[0].options.shapes == ("small", "odd")


def test_a_text_in_place_of_a_path_is_named_to_the_caller_of_a_service() -> None:
    with pytest.raises(UsageError, match="solution is the path of a file; give a text as source"):
        from_json({"problem": str(PROBLEM), "solution": RIGHT.format(body="x")}, remote=False)


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
def test_messages_of_the_evaluation_name_fields_as_well(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"shapes tiny: .* declares no such shape"):
        evaluate(PROBLEM, RIGHT.format(body="x"), device="cpu", cache=cache, shapes=("tiny",))


@pytest.mark.slow
def test_a_problem_that_hangs_in_the_judge_leaves_the_service_usable(start: Start, cache: Path, tmp_path: Path) -> None:
    start()
    path = write_problem(tmp_path, "hangs", {"forward": "hang() if IN_JUDGE else None"})
    row = evaluate(path, SOLUTION, device="cpu", check=True, allow_library=True, problem_timeout=2.0, cache=cache)
    assert row.verdict is Verdict.PROBLEM_ERROR and "the reference's forward takes longer than 2 s" in row.reason
    assert ask(right_body(), cache, problem_timeout=2.0).verdict is Verdict.PASSED


@pytest.mark.slow
def test_threads_and_processes_share_the_service(start: Start, cache: Path) -> None:
    service = start()
    bodies = [right_body() + extra for extra in ("", " + 1", " * 2", "", " + 0", "")]
    expected = [Verdict.PASSED, Verdict.WRONG, Verdict.WRONG, Verdict.PASSED, Verdict.PASSED, Verdict.PASSED]
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(3, mp_context=spawn) as processes:
        asked: list[Future[Result]] = [(threads, processes)[index % 2].submit(ask, body, cache)
                                       for index, body in enumerate(bodies)]
        assert [each.result().verdict for each in asked] == expected
    assert len(judges(service)) == 1 and judges(os.getpid()) == judges(service)


@pytest.mark.slow
def test_other_settings_get_other_judges_and_idle_ones_are_closed(start: Start, cache: Path) -> None:
    service = start()
    for calls in (2, 3, 4):
        assert ask(right_body(), cache, min_calls=calls).check.calls == calls + 5  # type: ignore[union-attr]
    until(lambda: len(judges(service)) == 2)


@pytest.mark.slow
@pytest.mark.parametrize("with_service", [False, True])
def test_usage_and_device_errors_are_raised_as_they_are(start: Start, cache: Path, with_service: bool) -> None:
    if with_service:
        start()
    for problem, settings, error, said in (
        ("no_such_problem", {}, UsageError, "no problem"),
        (str(PROBLEM), {"device": "cuda:63"}, NoDevice, "GPU|CUDA"),
        (str(PROBLEM), {"shapes": ("tiny",)}, UsageError, "no such shape"),
        (str(PROBLEM), {"shapes": ("full", "full")}, UsageError, "select 2"),
    ):
        with pytest.raises(error, match=said):
            evaluate(problem, RIGHT.format(body="x"), **{"device": "cpu", "cache": cache, **settings})
    assert ask(right_body(), cache).verdict is Verdict.PASSED


def body(solution: str, cache: Path, **settings: Any) -> dict[str, Any]:
    return to_json(PROBLEM, solution, {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3,
                                       "cache": cache, **settings})


def test_a_service_answers_equal_solutions_once_and_evaluate_measures_again(start: Start, cache: Path) -> None:
    start()
    client, right, wrong = Client(), RIGHT.format(body=right_body()), RIGHT.format(body=right_body() + " + 1")
    in_prose = {**body(right, cache), "response": f"It is this:\n```python\n{right}```\n"}
    del in_prose["source"]
    asked = [body(right, cache), body(wrong, cache), body(right, cache), body(wrong, cache), in_prose,
             body(right, cache, tolerance=0.5), {**body(right, cache), "reuse": False}]
    shown = [ask_service(client, name) for name in client.submit(asked)]
    assert [each["result"]["verdict"] for each in shown] == ["passed", "wrong"] * 2 + ["passed"] * 3
    assert [sum(shown[index]["reused"] for index in equal) for equal in ((0, 2, 4), (1, 3), (5,), (6,))] == [2, 1, 0, 0]
    assert len({json.dumps(shown[index]["result"]) for index in (0, 2, 4)}) == 1
    again = ask(right_body(), cache)
    assert again.key == shown[0]["result"]["key"] and again.seconds != shown[0]["result"]["seconds"]


def ask_service(client: Client, name: str) -> dict[str, Any]:
    client.result(name)
    found: dict[str, Any] = client._ask("GET", f"/evaluations/{name}")
    return found


@pytest.mark.slow
def test_an_evaluator_reuses_results_only_if_it_is_told_to(cache: Path) -> None:
    for reuse in (False, True):
        settings = {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3, "cache": cache}
        with Evaluator(reuse=reuse, **settings) as evaluator:
            first, second = (evaluator.evaluate(PROBLEM, RIGHT.format(body=right_body())) for _ in range(2))
            assert first.verdict is Verdict.PASSED and (first == second) == reuse
            assert evaluator.evaluate(PROBLEM, RIGHT.format(body=right_body() + " + 1")).verdict is Verdict.WRONG


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_accepted_evaluations_survive_the_end_of_a_service(start: Start, cache: Path, how: signal.Signals) -> None:
    service = start("--threads", "2")
    (hanging,) = Client().submit([body(HANGS, cache, timeout=5.0)])
    names = Client().submit([body(RIGHT.format(body=right_body() + extra), cache) for extra in ("", " + 1", "")])
    with ThreadPoolExecutor(2) as threads:
        waits = threads.submit(Client().result, hanging)
        does_not = threads.submit(Client(patience=0).result, hanging)
        until(lambda: judges(service))
        os.kill(service, how)
        os.waitpid(service, 0)
        with pytest.raises(ServerDied, match="does not answer"):
            does_not.result()
        start()
        assert waits.result().verdict is Verdict.TIMED_OUT
    assert [Client().result(name).verdict for name in names] == [Verdict.PASSED, Verdict.WRONG, Verdict.PASSED]
    with sqlite3.connect(folder() / "service.sqlite") as journal:
        attempts = [each for (each,) in journal.execute("SELECT attempts FROM evaluations ORDER BY number")]
    assert len(attempts) == 4 and attempts[0] == (2 if how is signal.SIGKILL else 1)


@pytest.mark.slow
def test_an_evaluation_whose_judge_is_killed_is_repeated_by_another_judge(cache: Path) -> None:
    slow = RIGHT.format(body="__import__('time').sleep(0.3) or " + right_body())
    settings = {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3, "cache": cache}
    with Evaluator(**settings) as evaluator, ThreadPoolExecutor(1) as thread:
        assert evaluator.evaluate(PROBLEM, slow).verdict is Verdict.PASSED
        (judge,) = judges(os.getpid())
        asked = thread.submit(evaluator.evaluate, PROBLEM, slow)
        time.sleep(0.6)
        os.kill(judge, signal.SIGKILL)
        assert not asked.done()
        assert asked.result().verdict is Verdict.PASSED and judges(os.getpid()) != [judge]


@pytest.mark.slow
def test_the_temporary_files_of_a_killed_service_are_removed(
    start: Start, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (temporary / "inlinebench-of-another").mkdir()
    service = start()
    (name,) = Client().submit([body(HANGS, cache, timeout=5.0)])
    until(lambda: judges(service))
    os.kill(service, signal.SIGKILL)
    os.waitpid(service, 0)
    assert len(list(temporary.iterdir())) == 2
    again = start()
    assert Client().result(name).verdict is Verdict.TIMED_OUT and len(list(temporary.iterdir())) == 2
    os.kill(again, signal.SIGTERM)
    os.waitpid(again, 0)
    assert [path.name for path in temporary.iterdir()] == ["inlinebench-of-another"]


def test_a_repeated_request_is_accepted_once_and_its_id_names_nothing_else(tmp_path: Path) -> None:
    begun: list[str] = []

    def evaluate_it(request: Request, caller: str) -> Answered:
        begun.append(request.source or "")
        raise UsageError("reached")

    work = WorkQueue(Journal(tmp_path / "journal"), evaluate_it, threads=1, most_waiting=9)
    asked = [{"id": f"{'a' * 15}{number}", "problem": "matmul_diag", "source": f"x = {number}"} for number in range(2)]
    assert work.accept(USER, asked[:1]) == ["a" * 15 + "0"]
    for _ in range(2):
        assert work.accept(USER, asked) == ["a" * 15 + "0", "a" * 15 + "1"]
    for owner, other in (("token ann", asked[:1]), (USER, [{**asked[0], "source": "x = 9"}])):
        with pytest.raises(UsageError, match="is that of another evaluation"):
            work.accept(owner, [{**asked[0], "id": "b" * 16}, *other])
    with pytest.raises(UsageError, match="the same id"):
        work.accept(USER, asked[:1] * 2)
    for name in ("a" * 15 + "0", "a" * 15 + "1"):
        work.done(name).result(PATIENCE_S)
    assert begun == ["x = 0", "x = 1"] and work.find("b" * 16, "token ann") is None


def test_what_ran_when_the_service_was_killed_often_is_evaluated_once_more_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    bodies = {name: {"problem": str(PROBLEM), "source": name} for name in ("poison", "twice", "caught", "new", "newer")}
    journal.accept(USER, bodies)
    for name, attempts in (("poison", MOST_ATTEMPTS + 1), ("twice", MOST_ATTEMPTS - 1), ("caught", MOST_ATTEMPTS)):
        for _ in range(attempts):
            journal.begin(name)
    journal.close()
    now: list[str] = []
    beside: dict[str, set[str]] = {}

    def evaluate_it(request: Request, caller: str) -> Answered:
        name = str(request.source)
        beside[name] = set(now)
        now.append(name)
        time.sleep(0.3)
        now.remove(name)
        beside[name] |= set(now)
        raise UsageError("reached")

    work = WorkQueue(Journal(tmp_path / "journal"), evaluate_it, threads=5, most_waiting=9)
    for name in bodies:
        work.done(name).result(PATIENCE_S)
    answers = {name: json.loads(entry.answer) for name in bodies if (entry := work.find(name, USER)) and entry.answer}
    assert [each["error"] for each in answers.values()] == ["ServerDied", *["UsageError"] * 4]
    assert "was killed 4 times" in answers["poison"]["message"]
    assert beside["caught"] == set() and beside["new"] != set() and list(beside)[-1] == "caught"


def test_an_answer_that_finds_no_room_on_the_disk_is_written_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("inlinebench.serve.journal.AGAIN_S", 0.1)
    journal, go_on = Journal(tmp_path / "journal"), Event()

    def evaluate_it(request: Request, caller: str) -> Answered:
        assert go_on.wait(PATIENCE_S)
        raise UsageError("x" * 100_000)

    work = WorkQueue(journal, evaluate_it, threads=1, most_waiting=9)
    names = work.accept(USER, [{"problem": str(PROBLEM), "source": "x = 1"}] * 2)
    until(lambda: work.running)
    journal._connection.execute("PRAGMA max_page_count = 5")
    go_on.set()
    with pytest.raises(TimeoutError):
        work.done(names[0]).result(0.5)
    assert "the journal cannot be written, which is tried again: database or disk is full" in capfd.readouterr().err
    journal._connection.execute("PRAGMA max_page_count = 1000")
    for name in names:
        work.done(name).result(PATIENCE_S)


def test_old_answers_leave_the_journal_and_unanswered_evaluations_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal")
    answered, waiting = journal.accept(USER, {"answered": {}, "waiting": {}})
    journal.finish(answered, "{}")
    journal.close()
    for kept_s, kept in ((3600.0, True), (-1.0, False)):
        monkeypatch.setattr("inlinebench.serve.journal.KEPT_S", kept_s)
        journal = Journal(tmp_path / "journal")
        assert (journal.find(answered, USER) is not None) == kept
        assert [each.id for each in journal.unfinished()] == [waiting]
        journal.close()


def test_a_service_of_other_files_is_not_used(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setattr("inlinebench.serve.client.version", lambda: "0.0.1+1")
    with pytest.raises(UsageError, match=r"was started with other files of inlinebench .* restart it"):
        evaluate(PROBLEM, RIGHT.format(body="x"), device="cpu", check=True)


def test_a_second_service_of_a_user_is_refused_and_the_first_ends_by_a_signal(start: Start) -> None:
    first = start()
    second = subprocess.run([sys.executable, "-m", "inlinebench", "serve"], check=False, capture_output=True,
                            text=True)
    assert second.returncode == 2 and "another service of yours runs" in second.stderr
    os.kill(first, signal.SIGTERM)
    until(lambda: not (folder() / SOCKET).exists())


class Http:
    """Asks a service at a port, as a program without inlinebench would."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, method: str, path: str, token: str = "", body: bytes = b"") -> tuple[int, Any]:
        with self._begun(method, path, token, len(body)) as connection:
            connection.sendall(body)
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        first, _, rest = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), json.loads(rest) if b"application/json" in first else rest.decode()

    def leave(self, token: str) -> None:
        """Submits a part of an evaluation, and closes the connection."""
        with self._begun("POST", "/evaluations", token, 100) as connection:
            connection.sendall(b"{")

    def _begun(self, method: str, path: str, token: str, size: int) -> socket.socket:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {size}\r\n"
        head += f"Authorization: Bearer {token}\r\n" if token else ""
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_S)
        connection.sendall(head.encode() + b"\r\n")
        return connection


@pytest.fixture
def http(start: Start, tmp_path: Path) -> Http:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "tokens").write_text("ann secret-a\nbob secret-b 2\n")
    start("--port", str(port), "--token-file", str(tmp_path / "tokens"), "--max-waiting", "3", "--threads", "1")
    return Http(port)


def test_over_a_port_each_caller_sees_only_its_own(http: Http) -> None:
    asked = json.dumps({"problem": "no_such_problem", "source": "x = 1"}).encode()
    for token in ("", "guessed", "secret-"):
        assert http.ask("POST", "/evaluations", token, asked)[0] == 401
        assert http.ask("GET", "/metrics", token)[0] == 401
    status, accepted = http.ask("POST", "/evaluations", "secret-a", asked)
    assert (status, accepted["state"]) == (202, "queued")
    status, done = http.ask("GET", f"/evaluations/{accepted['id']}?wait=60", "secret-a")
    assert (status, done["state"], done["error"]) == (200, "done", "UsageError") and "no problem" in done["message"]
    assert http.ask("GET", f"/evaluations/{accepted['id']}", "secret-b") == (404, {"message": "no such evaluation"})
    status, events = http.ask("GET", f"/evaluations/{accepted['id']}/events", "secret-a")
    assert status == 200 and '"state": "done"' in events
    assert 'inlinebench_answered_total{verdict="UsageError"} 1' in http.ask("GET", "/metrics", "secret-b")[1]
    assert http.ask("GET", "/health")[1]["waiting"] == 0
    assert http.ask("GET", "/openapi.json")[1] == openapi()


BAD_REQUESTS = [
    (b"{", 400, "no JSON"), (b"[" * 100_000, 400, "no JSON"), (b"3", 422, "an evaluation is an object"),
    (b'{"problem": "matmul_diag"}', 422, "one of source, response and solution"),
    (b'{"problem": "matmul_diag", "source": "", "more": 1}', 422, "an evaluation is an object"),
    (b'{"problem": "matmul_diag", "source": "", "reuse": 1}', 422, "reuse is true or false"),
    (b'{"problem": "matmul_diag", "source": "", "id": "short"}', 422, "id is a text of 16 to 64"),
    (b'{"problem": "matmul_diag", "source": "", "id": []}', 422, "id is a text of 16 to 64"),
    (b'{"problem": "matmul_diag", "source": "", "settings": {"zzz": 1}}', 422, "no setting 'zzz'"),
    (b'{"problem": "matmul_diag", "source": "", "settings": {"min_calls": "x"}}', 422, "write a positive integer"),
    (b'{"problem": "matmul_diag", "source": "", "settings": {"trust": true}}', 422, "only over the user's own socket"),
    (b'{"problem": "matmul_diag", "source": "", "settings": {"cache": "/x"}}', 422, "only over the user's own socket"),
    (b'{"problem": "matmul_diag", "source": "", "settings": {"sanitize": "memcheck"}}', 422, "sanitize can be"),
    (b'{"problem": "setup.py", "source": ""}', 422, "only over the user's own socket"),
    (b'{"problem": "definition.json", "source": ""}', 422, "only over the user's own socket"),
    (b'{"problem": "/etc/passwd", "source": ""}', 422, "only over the user's own socket"),
    (b'{"problem": "matmul_diag", "solution": "/etc/passwd"}', 422, "only over the user's own socket"),
    (b'{"problem": "matmul_diag", "source": "\\ud800"}', 422, "the source is not text"),
    (json.dumps([{"problem": "matmul_diag", "source": ""}] * 4).encode(), 422, "at most 3 evaluations"),
    (b" " * (17 << 20), 413, "at most 16 MiB"),
]


def test_bad_requests_are_refused_with_what_to_do(http: Http) -> None:
    for asked, status, said in BAD_REQUESTS:
        found, answer = http.ask("POST", "/evaluations", "secret-a", asked)
        assert found == status and said in answer["message"], answer
        assert http.ask("GET", "/health")[0] == 200


def test_a_client_that_leaves_within_its_request_is_no_error(http: Http, tmp_path: Path) -> None:
    for _ in range(10):
        http.leave("secret-a")
        assert http.ask("GET", "/health")[0] == 200
    assert "Traceback" not in (tmp_path / "service.log").read_text()


def test_a_caller_who_floods_is_refused_and_the_others_take_turns_with_it(tmp_path: Path) -> None:
    begun: list[str] = []
    go_on = Event()

    def evaluate_it(request: Request, caller: str) -> Answered:
        assert go_on.wait(PATIENCE_S)
        begun.append(caller)
        raise UsageError("reached")

    work = WorkQueue(Journal(tmp_path / "journal"), evaluate_it, threads=1, most_waiting=20, limits={"ann": 3})
    one = {"problem": "matmul_diag", "source": "x = 1"}
    names = work.accept("floods", [one])
    until(lambda: work.running)
    names += work.accept("floods", [one] * 20)
    for owner, limit in (("floods", 20), ("ann", 3)):
        with pytest.raises(UsageError, match=f"at most {limit} evaluations"):
            work.accept(owner, [one] * (limit + 1))
    with pytest.raises(QueueFull, match="20 of your evaluations wait, of at most 20"):
        work.accept("floods", [one])
    for _ in range(3):
        names += work.accept("ann", [one])
    with pytest.raises(QueueFull, match="3 of your evaluations wait, of at most 3"):
        work.accept("ann", [one])
    names += work.accept("bob", [one] * 2)
    go_on.set()
    for name in names:
        work.done(name).result(PATIENCE_S)
    assert begun[:9] == ["floods", *["floods", "ann", "bob"] * 2, "floods", "ann"] and begun[9:] == ["floods"] * 17


def test_over_a_port_a_caller_beyond_its_limit_is_told_when_to_try_again(http: Http) -> None:
    asked = json.dumps([{"problem": "matmul_diag", "source": "x = 1"}] * 2).encode()
    found = [http.ask("POST", "/evaluations", "secret-b", asked) for _ in range(3)]
    assert found[0][0] == 202 and found[-1][0] == 429 and "of at most 2; try again later" in found[-1][1]["message"]
    assert http.ask("POST", "/evaluations", "secret-a", asked)[0] == 202


@pytest.mark.parametrize(("text", "said"), [
    ("ann", "write a line NAME TOKEN"), ("ann a\nbob a", "a token of its own"), ("ann a many", "positive integer"),
    ("ann a 0", "positive integer"), ("ann a -1", "positive integer"),
    ("ann a 1 2", "write a line NAME TOKEN"), ("", "write a line NAME TOKEN"),
])
def test_a_malformed_token_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(UsageError, match=said):
        _callers(tmp_path / "tokens")


@pytest.mark.parametrize("arguments", [("--workers", "2"), ("--cpus", "4"), ("--ray-address", "auto")])
def test_options_of_a_cluster_need_the_cluster(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="only with --backend ray"):
        serve(arguments)


@pytest.mark.parametrize("option", ["--threads", "--max-waiting"])
def test_a_number_that_is_none_is_a_usage_error(option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} many: write a positive integer"):
        serve([option, "many"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=10)


@given(st.fixed_dictionaries({}, optional={
    "problem": st.just("matmul_diag") | json_values, "source": json_values, "response": json_values,
    "solution": json_values, "settings": json_values | st.dictionaries(
        st.sampled_from(["check", "shapes", "constants", "timeout", "device", "baselines", "trust", "cache"]),
        json_values, max_size=3)}) | json_values)
def test_any_body_is_a_request_or_a_usage_error(asked: Any) -> None:
    try:
        assert isinstance(from_json(asked, remote=True), Request)
    except UsageError as error:
        assert "\n" not in str(error)


def test_a_response_without_code_is_invalid(cache: Path) -> None:
    asked = {"problem": str(PROBLEM), "response": "I can't help with that.",
             "settings": {"device": "cpu", "check": True, "cache": str(cache)}}
    with Evaluator() as evaluator:
        result = evaluator.answer(from_json(asked, remote=False)).result
    assert result.verdict is Verdict.INVALID and result.reason == "no code block in 1 line"


def test_evaluations_on_one_gpu_take_turns() -> None:
    order: list[str] = []

    def take(name: str) -> None:
        with turn("cuda:0"):
            order.append(name)
            time.sleep(0.1)
            order.append(name)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take, "abcd"))
    assert order[::2] == order[1::2]


def test_the_folder_may_be_longer_than_a_socket_path(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    start()
    assert Client().health()["waiting"] == 0


def test_a_folder_that_other_users_can_access_is_refused() -> None:
    found = folder()
    assert found.stat().st_mode & 0o077 == 0
    found.chmod(0o777)
    with pytest.raises(UsageError, match="can be accessed by other users"):
        folder()
    found.chmod(0o700)
