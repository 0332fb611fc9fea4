"""`run_eval.py` as users and CI meet it: exit statuses, what is said where, and what is left behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.options import PROFILES
from inlinebench.results.result import Verdict
from inlinebench.results.result_json import SCHEMA, from_json
from inlinebench.sandbox.policy import REQUIRED
from inlinebench.sandbox.self_test import available
from inlinebench.wire.processes import descendants, kill_tree

from ..running import ROOT, TESTS, Run, command, run_eval

PROBLEM = """
import torch
from torch import nn

N = 32
SHAPES = {"small": {"N": 16}}

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return []
"""
SOLUTION = """
import os, signal, subprocess, sys, time
from torch import nn

def forge(data):
    for name in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{name}"
        if os.path.exists(link) and os.readlink(link).startswith("socket"):
            os.write(int(name), data)

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
        return x * 2
"""
Place = Callable[[dict[str, str]], list[str]]


@pytest.fixture
def place(tmp_path: Path, cache: Path) -> Place:
    """Writes problems and solutions, by path; gives the arguments that have them evaluated on the CPU."""

    def written(files: dict[str, str]) -> list[str]:
        for folder in ("problems", "solutions"):
            (tmp_path / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return ["--problems", str(tmp_path / "problems"), "--solutions", str(tmp_path / "solutions"), "--device", "cpu",
                "--cache", str(cache), "--check", "--min-calls", "2", "--allow-library", "--shape", "full"]

    return written


def solution(body: str = "pass") -> str:
    return SOLUTION.replace("BODY", body)


def usage_error(run: Run, *said: str) -> None:
    """One line on stderr, and nothing else."""
    assert run.status == 2, run.err
    assert run.out == ""
    (line,) = run.err.splitlines()
    for text in said:
        assert text in line


# Bad arguments stop the run before anything starts.


def test_an_unknown_problem_has_the_nearest_names() -> None:
    usage_error(run_eval("matmul_dia"), "no problem 'matmul_dia'", "did you mean", "matmul_diag")


def test_an_unknown_solution_has_the_nearest_names() -> None:
    usage_error(run_eval("matmul_diag/naiv"), "no solution 'matmul_diag/naiv'", "matmul_diag/naive")


def test_a_constant_that_the_file_lacks_is_named_with_those_it_has() -> None:
    usage_error(run_eval("matmul_diag", "--set", "Q=3"), "--set Q", "matmul_diag.py", "N, M")


@pytest.mark.parametrize(("arguments", "profile", "check"), [
    (("matmul_diag", "--profile", "DIR"), Path("DIR"), False),
    (("--profile=DIR", "matmul_diag"), Path("DIR"), False),
    (("matmul_diag", "--profile"), PROFILES, False),
    (("--profile", "--verbose", "matmul_diag"), PROFILES, False),
    (("--check", "matmul_diag"), None, True),  # a switch takes no value
    (("matmul_diag",), None, False),
])
def test_a_folder_for_profiles_is_optional(arguments: tuple[str, ...], profile: Path | None, check: bool) -> None:
    found = parse(arguments, {})
    assert (found.names, found.profile, found.check) == (("matmul_diag",), profile, check)


def test_a_folder_for_profiles_is_no_problem() -> None:
    usage_error(run_eval("matmul_diag", "--profile", "no_problem", "--device", "cpu"), "--profile needs a GPU")
    usage_error(run_eval("--check", "no_problem", "--device", "cpu"), "no problem 'no_problem'")


def test_an_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    usage_error(run_eval("matmul_diag", "--out", tmp_path / "file" / "out.jsonl"), str(tmp_path / "file"))
    usage_error(run_eval("matmul_diag", "--junit", tmp_path / "file" / "junit.xml"), str(tmp_path / "file"))


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = run_eval("matmul_diag", "--device", "cpu", "--cache", tmp_path / "file" / "cache")
    usage_error(run, "name another folder with --cache")


def test_no_folder_of_problems(tmp_path: Path) -> None:
    usage_error(run_eval("--problems", tmp_path / "none"), str(tmp_path / "none"), "--problems")


def test_nothing_to_evaluate(place: Place) -> None:
    usage_error(run_eval(*place({"problems/twice.py": PROBLEM})), "nothing to evaluate")


@pytest.mark.parametrize("device", ["cuda", *(pytest.param(f"cuda:{n}", marks=pytest.mark.slow) for n in (0, 99))])
def test_without_the_gpu_that_was_asked_for_the_status_is_3(device: str) -> None:
    run = run_eval("matmul_diag", "--device", device, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert (run.status, run.out) == (3, "")
    (line,) = run.err.splitlines()
    assert "no CUDA device" in line


# A bad file is its row's verdict, and the rest of the run goes on.

BAD_PROBLEMS = {
    "no_model": ("x = 1", "missing Model, get_inputs"),
    "no_inputs": (PROBLEM.replace("def get_inputs", "def inputs"), "missing get_inputs"),
    "syntax_error": ("def f(:", "line 1"),
    "raises": (PROBLEM.replace("return x * 2", "raise ValueError('odd size')"), "forward raises ValueError: odd size"),
    "raises_at_import": ("import torch.no_such_module", "ModuleNotFoundError"),
    "raises_in_constructor": (PROBLEM.replace("    def forward", "    def __init__(self): 1 / 0\n    def forward"),
                              "Model(...) raises ZeroDivisionError"),
    "no_list": (PROBLEM.replace("[torch.rand(N)]", "torch.rand(N)"), "get_inputs() returns Tensor"),
    "leaves": ("import os\nos._exit(0)", "loading the file ends the process"),
}
BAD_SOLUTIONS = {
    "syntax_error": ("def f(:", Verdict.INVALID, "line 1"),
    "missing_import": ("import no_such_module", Verdict.INVALID, "No module named 'no_such_module'"),
    "no_model_new": ("class Model: pass", Verdict.INVALID, "no class ModelNew; define a torch.nn.Module"),
    "no_module": ("class ModelNew: pass", Verdict.INVALID, "ModelNew is not a torch.nn.Module"),
    "other_signature": (SOLUTION.replace("    def forward", "    def __init__(self, size): pass\n    def forward"),
                        Verdict.INVALID, "0 arguments of get_init_inputs()"),
    "empty": ("", Verdict.INVALID, "ModelNew"),
    "binary": ("\0", Verdict.INVALID, "null bytes"),
    "leaves_at_import": ("raise SystemExit(0)", Verdict.CRASHED, "exited with status 0"),
    "leaves": (solution("os._exit(0)"), Verdict.CRASHED, "exited with status 0"),
    "killed": (solution("os.kill(os.getpid(), signal.SIGSEGV)"), Verdict.CRASHED, "killed by SIGSEGV"),
    "interrupts": (solution("raise KeyboardInterrupt"), Verdict.CRASHED, "exited with status"),
    "writes_frames": (solution("forge(b'\\0\\0\\0\\2[]')"),
                      Verdict.REJECTED, "malformed message"),
    "answers_itself": (solution("forge(b'\\0\\0\\0\\x0f{\"op\":\"called\"}')"),
                       Verdict.REJECTED, "answers no request"),
    "honest": (solution(), Verdict.PASSED, ""),
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Run:
    """One run of all bad files, and of honest ones among them."""
    root = tmp_path_factory.mktemp("bad")
    for folder in ("problems", "solutions/twice", "solutions/lost"):
        (root / folder).mkdir(parents=True)
    (root / "problems/twice.py").write_text(PROBLEM)
    (root / "problems/too_large.py").write_text(PROBLEM.replace("N = 32", "N = 1 << 45"))
    (root / "solutions/lost/naive.py").write_text(solution())
    for name, (text, _) in BAD_PROBLEMS.items():
        (root / f"problems/{name}.py").write_text(text)
    for name, (text, _, _) in BAD_SOLUTIONS.items():
        (root / f"solutions/twice/{name}.py").write_text(text)
    return run_eval("*", "twice/@reference", *(f"{name}/@reference" for name in (*BAD_PROBLEMS, "too_large")),
                    "--problems", root / "problems", "--solutions", root / "solutions", "--device", "cpu", "--check",
                    "--min-calls", "2", "--shape", "full", "--allow-library", "--cache", cache, out=root / "out.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_PROBLEMS)
def test_a_bad_problem_is_a_problem_error_that_names_the_file(bad: Run, name: str) -> None:
    row = bad.row(name, "@reference")
    assert row.verdict is Verdict.PROBLEM_ERROR
    assert f"{name}.py" in row.reason and BAD_PROBLEMS[name][1] in row.reason
    assert "\n" not in row.reason


@pytest.mark.parametrize("name", BAD_SOLUTIONS)
def test_a_bad_solution_has_its_verdict_and_the_rest_goes_on(bad: Run, name: str) -> None:
    row = bad.row("twice", name)
    assert (row.verdict, BAD_SOLUTIONS[name][2] in row.reason) == (BAD_SOLUTIONS[name][1], True), row.reason
    assert "\n" not in row.reason


def test_a_solution_for_a_problem_that_does_not_exist_is_invalid(bad: Run) -> None:
    row = bad.row("lost", "naive")
    assert row.verdict is Verdict.INVALID and "lost/naive.py: there is no problem 'lost'" in row.reason


def test_a_problem_that_does_not_fit_is_skipped_with_the_bytes_needed_and_there(bad: Run) -> None:
    row = bad.row("too_large", "@reference")
    assert row.verdict is Verdict.SKIPPED
    assert "GiB on cpu" in row.reason and "GiB are free there" in row.reason


def test_the_honest_ones_among_them_pass(bad: Run) -> None:
    assert bad.row("twice", "@reference").verdict is Verdict.PASSED


def test_no_traceback_reaches_the_screen_and_the_status_is_1(bad: Run) -> None:
    assert bad.status == 1
    assert "Traceback" not in bad.out + bad.err


def test_a_missing_compiler_is_each_row_s_reason(place: Place, tmp_path: Path) -> None:
    arguments = place({"problems/axpy.py": (TESTS / "problems/axpy.py").read_text(),
                       "solutions/axpy/wrong.py": (TESTS / "solutions/axpy/wrong.py").read_text()})
    run = run_eval(*arguments, environment={"PATH": str(tmp_path), "CXX": ""}, out=tmp_path / "out.jsonl")
    row = run.row("axpy", "wrong")
    assert (run.status, row.verdict) == (1, Verdict.BUILD_FAILED)
    assert "no C++ compiler: install g++" in row.reason


# Exit statuses.


@pytest.mark.slow
@pytest.mark.parametrize(("strict", "status"), [((), 0), (("--strict",), 1)])
def test_a_skip_counts_as_not_passed_only_if_strict(place: Place, strict: tuple[str, ...], status: int) -> None:
    arguments = place({"problems/twice.py": PROBLEM.replace("N = 32", "N = 1 << 45")})
    run = run_eval("twice/@reference", *arguments, *strict)
    assert run.status == status and "skipped" in run.out


def processes_with(text: str) -> list[str]:
    """The command lines of all processes that hold a text."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and text in line:
            found.append(f"{entry.name} {line}")
    return found


def wait_until(true: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_without_a_judge_its_evaluation_fails_and_the_next_one_has_a_new_judge(place: Place, tmp_path: Path) -> None:
    """Trusted, so that no sandbox keeps the solution from it."""
    kills = solution("from tests.cheats.judge import process_id; os.kill(process_id(), signal.SIGKILL); time.sleep(99)")
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/a_kills.py": kills,
                       "solutions/twice/b_honest.py": solution()})
    run = run_eval(*arguments, "--trust", out=tmp_path / "out.jsonl")
    assert run.row("twice", "a_kills").verdict is Verdict.INTERNAL_ERROR
    assert "the judge ended" in run.row("twice", "a_kills").reason
    assert run.row("twice", "b_honest").verdict is Verdict.PASSED


@pytest.mark.slow
def test_the_sandbox_that_was_on_is_in_the_result(place: Place, tmp_path: Path) -> None:
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/honest.py": solution()})
    for name, more in (("on", ()), ("off", ("--trust",))):
        run_eval(*arguments, *more, out=tmp_path / name)
    on, off = (json.loads((tmp_path / name).read_text())["protections"] for name in ("on", "off"))
    assert on == [str(protection) for protection in available()]
    assert off == []


@pytest.mark.slow
@pytest.mark.parametrize(("hidden", "status"), [("", 0), ("files", 3)])
def test_a_required_sandbox_that_cannot_be_had_stops_the_run(place: Place, hidden: str, status: int) -> None:
    if not set(REQUIRED) <= set(available()):
        pytest.skip("this machine offers no whole sandbox")
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/honest.py": solution()})
    code = ("import sys\nfrom inlinebench.sandbox import self_test\nfound = self_test.available()\n"
            f"self_test.available = lambda: tuple(name for name in found if name != {hidden!r})\n"
            "from inlinebench.cli.run import main\nsys.exit(main(sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", code, *arguments, "--require-sandbox"], cwd=ROOT, check=False,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert ("--require-sandbox: not available on this machine: files" in done.stderr) == bool(hidden)


DAEMON = ("subprocess.Popen(['sh', '-c', 'setsid sleep MARK & setsid sleep MARK'], start_new_session=True); "
          "time.sleep(999)")


@pytest.mark.slow
def test_the_children_of_a_hanging_solution_are_gone_afterwards(place: Place, tmp_path: Path) -> None:
    mark = f"8{os.getpid():07}1"
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/hangs.py": solution(DAEMON.replace("MARK", mark)),
                       "solutions/twice/honest.py": solution()})
    run = run_eval(*arguments, "--timeout", "6", out=tmp_path / "out.jsonl")
    assert run.row("twice", "hangs").verdict is Verdict.TIMED_OUT
    assert "no answer within 6 s (--timeout" in run.row("twice", "hangs").reason
    assert run.row("twice", "honest").verdict is Verdict.PASSED
    assert processes_with(f"sleep {mark}") == []


INTERRUPTIBLE = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); " \
    "os.execv(sys.argv[1], sys.argv[1:])"
"""Whoever starts the tests in the background has them ignore the interrupt, and children inherit that."""


@pytest.fixture
def interrupted() -> Iterator[list[subprocess.Popen[str]]]:
    """Runs to be interrupted; none of them outlives its test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        kill_tree(process.pid)
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("hangs", ["in_forward", "at_import"])
def test_an_interrupt_keeps_what_is_written_and_leaves_no_process(
    place: Place, tmp_path: Path, interrupted: list[subprocess.Popen[str]], hangs: str
) -> None:
    mark = f"8{os.getpid():07}{2 + (hangs == 'at_import')}"
    sleeper = DAEMON.replace("MARK", mark)
    text = solution(sleeper) if hangs == "in_forward" else f"import subprocess, time  # cpp_extension\n{sleeper}"
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/a.py": solution(),
                       "solutions/twice/b.py": text})
    out, junit = tmp_path / "out.jsonl", tmp_path / "junit.xml"
    # One build at a time: what is built first is evaluated first, and only the other one hangs.
    how = ("--jobs", "1", "--out", out, "--junit", junit)
    line = [sys.executable, "-c", INTERRUPTIBLE, *command(*arguments, *how)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    interrupted.append(process)

    def hangs_now() -> bool:
        assert process.poll() is None, process.communicate()
        written = out.exists() and out.read_text().endswith("\n")
        return written and len(processes_with(f"sleep {mark}")) >= 2

    wait_until(hangs_now)
    below = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in said + complained and "interrupted" in complained.splitlines()[-1]
    assert "passed" in said  # the table of what is done
    assert [from_json(line).solution for line in out.read_text().splitlines()] == ["a"]
    assert junit.exists()
    wait_until(lambda: not processes_with(f"sleep {mark}"), 5)
    assert len(below) > 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 5)


# What is said where, and how fast.


def imported_modules(*arguments: str) -> tuple[set[str], int]:
    done = subprocess.run([sys.executable, "-X", "importtime", str(ROOT / "run_eval.py"), *arguments],
                          capture_output=True, text=True, check=False, timeout=60)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}, done.returncode


@pytest.mark.parametrize("argument", ["--help", "--list", "--version", "--no-such-flag"])
def test_the_command_line_answers_without_torch(argument: str) -> None:
    modules, status = imported_modules(argument)
    assert "argparse" in modules and status == (2 if argument == "--no-such-flag" else 0)
    assert not {name for name in modules if name.partition(".")[0] in ("torch", "numpy")}


@pytest.mark.parametrize("argument", ["--help", "--list"])
def test_help_and_list_answer_at_once(argument: str) -> None:
    took, nothing = [], []
    for _ in range(5):
        nothing.append(processor_s(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)))
        took.append(processor_s(lambda: run_eval(argument)))
    # Of the processor: what a person waits on a machine that does nothing else. A busy or slow one takes longer for
    # anything. --list takes about 20 times as long as an empty program, and importing torch 200 times.
    assert min(took) < max(0.3, 40 * min(nothing))


def processor_s(work: Callable[[], object]) -> float:
    """The processor's seconds that the processes took which some work starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_list_names_problems_shapes_and_solutions() -> None:
    said = run_eval("--list").out
    for text in ("matmul_diag", "gemm_scale_batchnorm", "full", "small", "naive", "host_tensors"):
        assert text in said


@pytest.mark.parametrize("arguments", [
    ("--list",), pytest.param(("twice/@reference",), marks=pytest.mark.slow),
])
def test_a_reader_that_has_seen_enough_is_no_error(place: Place, arguments: tuple[str, ...]) -> None:
    line = command(*arguments, *place({"problems/twice.py": PROBLEM}))
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    complaints = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "Broken" not in complaints and "Traceback" not in complaints


@pytest.mark.slow
def test_verbose_shows_what_a_solution_prints_on_stderr_only(place: Place) -> None:
    arguments = place({"problems/twice.py": PROBLEM, "solutions/twice/prints.py": solution("print('here I am')")})
    quiet, loud = run_eval(*arguments), run_eval(*arguments, "--verbose")
    assert "here I am" not in quiet.out + quiet.err + loud.out
    assert "here I am" in loud.err


@pytest.mark.slow
def test_quiet_says_nothing_but_the_table(place: Place) -> None:
    run = run_eval("twice/@reference", *place({"problems/twice.py": PROBLEM}), "--quiet")
    assert (run.status, run.err) == (0, "") and "passed" in run.out


def test_a_solution_file_from_anywhere_a_problem_file_and_constants(place: Place, tmp_path: Path) -> None:
    arguments = place({"problems/other.py": PROBLEM, "elsewhere/twice.py": PROBLEM, "elsewhere/mine.py": solution()})
    run = run_eval(tmp_path / "elsewhere/twice.py", "--solution", tmp_path / "elsewhere/mine.py", *arguments[:-2],
                   "--set", "N=7", out=tmp_path / "out.jsonl")
    row = run.row("twice", "mine")
    assert (row.verdict, row.shape) == (Verdict.PASSED, "N=7"), row.reason


@pytest.mark.slow
def test_two_solution_files_are_compared_where_there_are_times(place: Place, tmp_path: Path) -> None:
    arguments = place({"problems/twice.py": PROBLEM, "here/mine.py": solution(), "there/mine.py": solution()})
    files = [word for name in ("here", "there") for word in ("--solution", tmp_path / name / "mine.py")]
    run = run_eval("twice", *files, *arguments)
    assert run.status == 0, run.err
    assert run.out.endswith("\nthere.mine is not compared with here.mine: times need a GPU\n")


@pytest.mark.slow
def test_results_are_lines_of_json_that_later_runs_add_to(place: Place, tmp_path: Path) -> None:
    arguments = place({"problems/twice.py": PROBLEM})
    for _ in range(2):
        run_eval("twice/@reference", *arguments, out=tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line["schema"], line["verdict"]) for line in lines] == [(SCHEMA, "passed")] * 2
    assert all(value is not None for line in lines for value in line.values()), "absent facts are absent"


@pytest.mark.slow
def test_a_run_in_a_pipe_says_what_takes_long(place: Place) -> None:
    slow = PROBLEM.replace("return x * 2", "import time; time.sleep(1); return x * 2")
    run = run_eval("slow/@reference", *place({"problems/slow.py": slow}), "--timeout", "30")
    said = [line for line in run.err.splitlines() if line.endswith(" s)")]
    assert said and all(line.startswith("slow/@reference full ") for line in said), run.err
