"""Bad inputs: each gives one line that says what to do, the right exit status, and no traceback."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inlinebench.results.result import Result, Verdict
from inlinebench.results.result_json import from_json, to_json
from inlinebench.wire.processes import descendants

from ..report.samples import result
from ..running import PYTHONPATH, ROOT

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
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
"""
FAST = ("--device", "cpu", "--min-calls", "2", "--allow-library")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a problem, two solutions and a file of results. Commands run there."""
    write(tmp_path / "problems/twice.py", PROBLEM)
    for name in ("a", "b"):
        write(tmp_path / f"solutions/twice/{name}.py", SOLUTION)
    rows = [result(f"p{number}/s", reason="", shape="full") for number in range(2000)]
    write(tmp_path / "results.jsonl", "".join(to_json(row) + "\n" for row in rows))
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def inlinebench(
    here: Path, *arguments: str, limit: int | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder. It may write files of `limit` bytes."""
    return subprocess.run(line(*arguments), cwd=here, check=False, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, env=environment,
                          preexec_fn=None if limit is None else lambda: limit_files(limit))


def line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "inlinebench.cli.main", *arguments]


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def results(path: Path) -> dict[str, Result]:
    return {row.solution: row for row in map(from_json, path.read_text().splitlines())}


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The line of an error, after the lines about folders and progress."""
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


REFUSED = [
    ("check --solutions loop --device cpu", "nothing to evaluate: no solution files in loop"),
    ("check --problems loop", "loop: no such folder"),
    ("check twice --solution loop", "--solution loop: no such file"),
    ("check twice --response loop", "--response loop: Too many levels of symbolic links"),
    ("check --out loop", "--out loop: can't be written (Too many levels of symbolic links)"),
    ("check --cache loop --device cpu", "cannot write the cache"),
    ("report loop", "loop: Too many levels of symbolic links; name a file written by --out"),
    ("check --lf --cache results.jsonl --device cpu", "--last-failed: "),
    ("run --min-calls many", "--min-calls many: write a positive integer"),
    ("run --min-calls", "--min-calls: expected one argument"),
    ("run --seeed 3", "unknown option --seeed; did you mean --seed?"),
    ("check --profile", "unknown option --profile; it is an option of inlinebench run"),
    ("run --quite", "unknown option --quite; did you mean --quiet?"),
    ("run --precision fp8", "--precision fp8: write one of fp32, fp16, bf16"),
    ("run --variants maybe", "--variants maybe: write on or off"),
    ("run --headers slim", "--headers slim: write auto or full"),
    ("run --shard 3/2", "--shard 3/2: write I/N, for example 2/8"),
    ("run --devices 0,0", "--devices 0,0: write all, GPU numbers such as 0,1, or cpu,cpu"),
    ("run --sanitize memchek", "--sanitize memchek: write one of memcheck, racecheck"),
    ("run --level one", "--level one: write a positive integer"),
    ("run --set M", "--set M: write NAME=VALUE"),
    ("run twise", "no problem 'twise'; did you mean twice?"),
    ("compare results.jsonl", "the following arguments are required: after"),
    ("cache shwo", "invalid choice: 'shwo'"),
    ("cache show --limit 3", "--limit works only with prune"),
    ("rnu", "unknown command 'rnu'; did you mean run?"),
    ("report results.jsonl -o none/o.html", "none/o.html: cannot be written (No such file or directory)"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_a_refused_command_says_what_to_do_in_one_line(here: Path, arguments: str, said: str) -> None:
    done = inlinebench(here, *arguments.split())
    assert done.returncode == 2 and done.stdout == ""
    assert said in last_line(done), done.stderr
    assert not [text for text in done.stderr.splitlines()[:-1] if not text.startswith("problems: ")]


def test_a_current_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    code = f"import os, sys; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir(os.getcwd()); " \
        "os.execv(sys.executable, [sys.executable, '-m', 'inlinebench.cli.main', 'list'])"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "the current folder no longer exists" in last_line(done)


def test_files_that_cannot_be_read_are_invalid_and_the_others_are_evaluated(here: Path, cache: Path) -> None:
    folder = here / "solutions/twice"
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "lost.py").symlink_to("nowhere")
    (folder / "folder.py").mkdir()
    out = here / "out.jsonl"
    done = inlinebench(here, "check", *FAST, "--cache", str(cache), "--out", str(out))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    found = results(out)
    assert {name: row.verdict for name, row in found.items()} == {
        "a": Verdict.PASSED, "b": Verdict.PASSED, "loop": Verdict.INVALID, "lost": Verdict.INVALID,
        "folder": Verdict.INVALID}
    assert found["loop"].reason.endswith("loop.py: Too many levels of symbolic links")


@pytest.mark.slow
@pytest.mark.parametrize("shapes", ["[1, 2]", "dict(small={'N': 16})", "{1: {'N': 16}}", "{**{}}", "3"])
def test_shapes_that_cannot_be_read_are_a_problem_error(here: Path, shapes: str) -> None:
    write(here / "problems/twice.py", PROBLEM.replace('{"small": {"N": 16}}', shapes))
    done = inlinebench(here, "check", "twice/a", "--device", "cpu")
    assert done.returncode == 1
    assert "problem_error: " in done.stdout and "line 6: SHAPES must be a dictionary of the constants" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "shape"), [
    ((), "small"), (("--shape", "full"), "full"), (("--set", "N=3"), "N=3"),
])
def test_a_response_without_code_is_invalid_at_the_shape_that_it_would_have_been_run(
    here: Path, arguments: tuple[str, ...], shape: str
) -> None:
    write(here / "response.md", "I cannot do that.")
    out = here / "out.jsonl"
    done = inlinebench(here, "check", "twice", "--device", "cpu", "--response", "response.md", *arguments, "--out",
                       str(out))
    assert done.returncode == 1
    assert {row.shape: row.verdict for row in results(out).values()} == {shape: Verdict.INVALID}


FEEDBACK = {
    "syntax": ("def f(:", "SyntaxError: invalid syntax (syntax.py, line 1)"),
    "missing": ("import no_such_module", "No module named 'no_such_module' (missing.py, line 1); install it, or"),
    "raises": ("1 / 0", "ZeroDivisionError: division by zero (raises.py, line 1)"),
    "without": ("x = 1", "no class ModelNew; define a torch.nn.Module of this name at the top level"),
    "no_module": ("class ModelNew: pass", "ModelNew is not a torch.nn.Module; define a torch.nn.Module"),
    "signature": (SOLUTION.replace("    def forward", "    def __init__(self, n): pass\n    def forward"),
                  "missing a required argument: 'n'; accept those of Model"),
}
"""Files that are `invalid`, and the whole advice on each."""


@pytest.mark.slow
def test_feedback_on_an_invalid_file_has_the_advice_of_its_reason(here: Path, cache: Path) -> None:
    for name, (text, _) in FEEDBACK.items():
        write(here / f"solutions/wrong/{name}.py", text)
    write(here / "problems/wrong.py", PROBLEM)
    done = inlinebench(here, "check", "wrong", *FAST, "--feedback", "--cache", str(cache))
    assert done.returncode == 1 and "What to do" not in done.stdout
    for name, (_, said) in FEEDBACK.items():
        found = done.stdout.partition(f"wrong/{name} (shape small, on cpu): invalid\n")[2]
        assert said in found.partition("\n")[0], found


@pytest.mark.slow
def test_an_empty_output_needs_no_kernel(here: Path, cache: Path) -> None:
    done = inlinebench(here, "check", "twice/a", "--device", "cpu", "--min-calls", "2", "--set", "N=0", "--cache",
                       str(cache))
    assert done.returncode == 0, done.stdout
    assert inlinebench(here, "check", "twice/a", "--device", "cpu", "--min-calls", "2", "--set", "N=1", "--cache",
                       str(cache)).returncode == 1


@pytest.mark.slow
def test_options_without_effect_on_the_cpu_are_named(here: Path, cache: Path) -> None:
    options = ("--baseline", "compile", "--half-width", "0.1")
    done = inlinebench(here, "run", "twice/a", *FAST, *options, "--cache", str(cache))
    assert "--half-width, --baseline: no effect on the CPU, where no speedup is measured\n" in done.stderr
    assert "no effect" not in inlinebench(here, "run", "twice/a", *FAST, "--cache", str(cache)).stderr


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_a_line_and_the_table_so_far(here: Path, cache: Path) -> None:
    done = inlinebench(here, "check", *FAST, "--cache", str(cache), "--out", "/dev/full")
    assert done.returncode == 2 and "passed" in done.stdout
    assert "--out /dev/full: can't be written (No space left on device)" in last_line(done)


@pytest.mark.slow
def test_a_junit_file_that_cannot_be_written_any_more_costs_only_itself(here: Path, cache: Path) -> None:
    """Its folder goes away during the run; a trusted solution may do that."""
    (here / "reports").mkdir()
    write(here / "solutions/twice/a.py", f"import os\nos.rmdir({str(here / 'reports')!r})\n{SOLUTION}")
    done = inlinebench(here, "check", "twice/a", *FAST, "--trust", "--cache", str(cache), "--junit", "reports/o.xml")
    assert done.returncode == 2 and "passed" in done.stdout
    assert "--junit reports/o.xml: can't be written (No such file or directory)" in last_line(done)


@pytest.mark.parametrize("name", ["o.xml", "o.csv", "o.md"])
def test_a_report_on_a_full_disk_is_refused_and_leaves_no_file(here: Path, name: str) -> None:
    done = inlinebench(here, "report", "results.jsonl", "-o", name, limit=2000)
    assert done.returncode == 2 and f"{name}: can" in last_line(done) and "File too large" in last_line(done)
    assert sorted(path.name for path in here.iterdir()) == ["loop", "problems", "results.jsonl", "solutions"]


@pytest.mark.parametrize("arguments", ["report results.jsonl", "list"])
def test_a_full_disk_below_stdout_is_one_line(here: Path, arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(line(*arguments.split()), cwd=here, check=False, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.splitlines() == [
        f"inlinebench {arguments.split(maxsplit=1)[0]}: cannot write to standard output (No space left on device)"]


@pytest.mark.parametrize("arguments", ["report results.jsonl", "compare results.jsonl results.jsonl --all"])
def test_a_closed_pipe_is_not_an_error(here: Path, arguments: str) -> None:
    command = f"{' '.join(line(arguments))} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=here, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("problem ")


OWN_MODULES = {"json.py": "raise RuntimeError('not the json of Python')", "random.py": "", "tempfile.py": "",
               "harness/__init__.py": "raise RuntimeError('not the harness')", "mine.py": "FACTOR = 2"}
"""Modules of a user with the names of modules that the harness imports, and one that a problem imports."""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["first", "last", "here"])
def test_modules_of_the_user_do_not_replace_those_of_python(here: Path, cache: Path, where: str) -> None:
    for name, text in OWN_MODULES.items():
        write(here / name, text)
    write(here / "problems/twice.py", PROBLEM.replace("import torch", "import torch\nfrom mine import FACTOR", 1))
    write(here / "solutions/twice/a.py", SOLUTION.replace("x * 2", "x * FACTOR").replace(
        "from torch", "from mine import FACTOR\nfrom torch", 1))
    paths = {"first": [str(here), PYTHONPATH], "last": [PYTHONPATH, str(here)], "here": [PYTHONPATH]}[where]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(ROOT / "run_eval.py"), "--check", *FAST, "--cache", str(cache)]
    done = subprocess.run(command, cwd=here, check=False, capture_output=True, text=True, timeout=300,
                          env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_module_that_hides_pytorch_is_named(here: Path) -> None:
    write(here / "torch.py", "")
    done = inlinebench(here, "check", "twice/a", "--device", "cpu")
    assert done.returncode == 3
    assert last_line(done).endswith(f"{here / 'torch.py'} is imported instead of PyTorch: rename it, or run in another "
                                    "folder")


def test_a_response_from_a_closed_input_is_refused(here: Path) -> None:
    done = subprocess.run(line("check", "twice", "--response", "-"), cwd=here, check=False, capture_output=True,
                          text=True, timeout=60, preexec_fn=lambda: os.close(0))
    assert done.returncode == 2 and "standard input is closed" in last_line(done)


def test_a_shape_named_like_one_with_a_backward_is_a_problem_error(here: Path) -> None:
    write(here / "problems/twice.py", PROBLEM.replace('{"small":', '{"small+backward": {"N": 8}, "small":'))
    assert "line 6: SHAPES has a shape 'small+backward'; results of --backward" in inlinebench(here, "list").stdout


def test_two_shapes_of_one_name_are_a_problem_error(here: Path) -> None:
    write(here / "problems/twice.py", PROBLEM.replace('{"small":', '{"small": {"N": 8}, "small":'))
    done = inlinebench(here, "list")
    assert "line 6: SHAPES has two shapes of the name 'small'" in done.stdout


HEEDING = ("env", "--default-signal")
"""Undoes `nohup`, and that a shell's commands in the background ignore Ctrl-C."""


def begun(here: Path, cache: Path, solution: str) -> subprocess.Popen[str]:
    """Starts a check of a solution that runs for a minute, and waits until it runs."""
    mark = here / "running"
    write(here / "solutions/twice/a.py", solution.replace("return x * 2", f"open({str(mark)!r}, 'w').close()"
                                                          "\n        import time; time.sleep(60)"))
    command = [*HEEDING, *line("check", "twice/b", "twice/a", *FAST, "--trust", "--cache", str(cache))]
    process = subprocess.Popen(command, cwd=here, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not mark.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("number", "said"), [
    (signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM"), (signal.SIGHUP, "ended by SIGHUP"),
])
def test_a_signal_ends_a_run_with_its_table_and_all_of_its_processes(
    here: Path, cache: Path, number: signal.Signals, said: str
) -> None:
    process = begun(here, cache, SOLUTION)
    below = descendants(process.pid)
    assert below
    begin = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 2
    assert process.returncode == 128 + number and "Traceback" not in err
    assert err.splitlines()[-1] == f"inlinebench check: {said}; the results written so far are complete"
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("after_s", [0.2, 0.4])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(here: Path, after_s: float) -> None:
    process = subprocess.Popen([*HEEDING, *line("list")], cwd=here, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # Python itself needs some of the time to start, and says more if it is interrupted then.
    assert "inlinebench" not in err or process.returncode == 0 or len(err.splitlines()) == 1, err
