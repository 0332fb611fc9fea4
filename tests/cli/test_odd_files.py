"""Solutions that are odd files: each has its own verdict and reason, and costs the others nothing."""

from __future__ import annotations

import html
import os
import subprocess
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from ..hostile import faults
from .test_bad_inputs import FAST, PROBLEM, SOLUTION, inlinebench, line, results, write

pytestmark = pytest.mark.slow

PASSED, INVALID, CRASHED, WRONG = Verdict.PASSED, Verdict.INVALID, Verdict.CRASHED, Verdict.WRONG
ODD: dict[str, tuple[bytes, Verdict, str]] = {
    "empty": (b"", INVALID, "no class ModelNew; define a torch.nn.Module"),
    "nul": (SOLUTION.encode() + b"\0", INVALID, "null bytes"),
    "utf16": (SOLUTION.encode("utf-16"), INVALID, "null bytes"),
    "bom": (b"\xef\xbb\xbf" + SOLUTION.encode(), PASSED, ""),
    "crlf": (SOLUTION.replace("\n", "\r\n").encode(), PASSED, ""),
    "nonsense_coding": (b"# -*- coding: nonsense -*-\n", INVALID, "unknown encoding: nonsense"),
    "nested": (b"x = " + b"(" * 500 + b")" * 500, INVALID, "too many nested parentheses"),
    "beside": (b"import empty_module\n", INVALID, "is next to the solution: add this folder to PYTHONPATH"),
    "empty_module": (b"", INVALID, "no class ModelNew"),
    "exits": (b"import sys; sys.exit(3)", CRASHED, "exited with status 3 before it replied"),
    "interrupts": (b"raise KeyboardInterrupt", CRASHED, "before it replied"),
    "recursion": (b"def f(): return f()\nf()", INVALID, "RecursionError"),
    "none": (b"ModelNew = None", INVALID, "no class ModelNew"),
    "instance": (SOLUTION.encode() + b"\nModelNew = ModelNew()", INVALID, "ModelNew is not a torch.nn.Module"),
    "two_arguments": (SOLUTION.replace("self, x", "self, x, y").encode(), CRASHED, "positional argument: 'y'"),
    "none_returned": (SOLUTION.replace("x * 2", "None").encode(), WRONG, "an output is NoneType"),
    "coroutine": (SOLUTION.replace("def f", "async def f").encode(), WRONG, "an output is coroutine"),
    "meta": (SOLUTION.replace("x * 2", "(x * 2).to('meta')").encode(), CRASHED, "Cannot copy out of meta tensor"),
    "sp ace": (SOLUTION.encode(), PASSED, ""),
    "é": (SOLUTION.encode(), PASSED, ""),
    "new\nline": (SOLUTION.encode(), PASSED, ""),
    "@reference": (b"raise ValueError", INVALID, "@reference is the problem's reference; rename the file"),
    "b\udcff": (SOLUTION.encode(), INVALID, "the name is not UTF-8; rename the file"),
}
"""Contents, verdict and a part of the reason, by the name of the file."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "problems/twice.py", PROBLEM)
    write(tmp_path / "solutions/twice/a.py", SOLUTION)
    return tmp_path


def test_each_odd_file_has_its_verdict_and_its_reason(here: Path, cache: Path) -> None:
    for name, (data, _, _) in ODD.items():
        (here / f"solutions/twice/{name}.py").write_bytes(data)
    os.mkfifo(here / "solutions/twice/fifo.py")
    done = inlinebench(here, "check", *FAST, "--cache", str(cache), "--out", "out.jsonl")
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    found = results(here / "out.jsonl")
    assert found.pop("a").verdict is PASSED
    assert found.pop("fifo").reason.endswith("fifo.py: not a regular file")
    found["@reference"] = found.pop("@reference.py")
    wanted = {name: verdict for name, (_, verdict, _) in ODD.items()}
    assert {name: row.verdict for name, row in found.items()} == wanted
    for name, (_, _, said) in ODD.items():
        assert said in found[name].reason, (name, found[name].reason)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_costs_only_what_it_would_have_shown(here: Path, cache: Path, closed: str) -> None:
    command = " ".join(line("check", *FAST, "--cache", str(cache), "--out", "out.jsonl"))
    done = subprocess.run(["bash", "-c", f"{command} {closed}"], cwd=here, capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert results(here / "out.jsonl")["a"].verdict is PASSED
    assert (done.stdout == "") is (closed.startswith(">")) and "problems: " not in done.stdout


def test_a_full_disk_below_stderr_ends_the_run_with_status_2(here: Path, cache: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(line("check", *FAST, "--cache", str(cache)), cwd=here, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=full, timeout=300)
    assert done.returncode == 2


def test_names_beyond_the_encoding_of_stdout_are_escaped(here: Path) -> None:
    write(here / "problems/é.py", PROBLEM)
    done = inlinebench(here, "list", environment={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and r"\xe9" in done.stdout


@pytest.mark.parametrize("shown", ["--verbose", "--feedback"])
def test_a_solution_commands_neither_the_terminal_nor_the_ci_service(here: Path, cache: Path, shown: str) -> None:
    said = "a\n::stop-commands::x\r\n  ##[group]b\r\x1b[2J\x9b1A\u202e\u2028::error::c\n##vso[task.complete]d"
    source = f"print({said!r})\nraise RuntimeError({said!r})\n"
    for name in ("::stop-commands::x", "##[group]b", "\x1b[2J\r", "c\n::error::d"):
        write(here / f"solutions/twice/{name}.py", source)
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(here),
                   "GITHUB_STEP_SUMMARY": str(here / "summary.md")}
    command = line("check", *FAST, "--cache", str(cache), "--junit", "out.xml", shown)
    done = subprocess.run(command, cwd=here, check=False, capture_output=True, env=environment, timeout=300)
    listed = subprocess.run(line("list"), cwd=here, check=True, capture_output=True, timeout=300)
    files = [(here / name).read_bytes() for name in ("summary.md", "out.xml")]
    for output in (done.stdout, done.stderr, listed.stdout, *files):
        assert faults(output.decode()) == [] and r"\x1b[2J" in html.unescape(output.decode())
    assert done.returncode == 1 and done.stderr.count(b"\n::error file=") == 4
