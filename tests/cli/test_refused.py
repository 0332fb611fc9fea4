"""Command lines and files that are refused before anything is evaluated: one line, status 2, and nothing is changed.

`test_bad_inputs.py` has those that need processes.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from inlinebench.cli.main import main
from inlinebench.results.result_json import SCHEMA, to_json

from ..report.samples import result
from .test_bad_inputs import PROBLEM, SOLUTION, write

ROWS = "".join(to_json(result(f"p{number}/s", speedup=1.5)) + "\n" for number in range(3))
ROW = json.loads(ROWS.splitlines()[0])
UNSHARDED = "no result is of a run with --shard, so it is not known whether any are missing\n"
HUGE = "9" * 5000


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a problem, a solution and a file of three results."""
    write(tmp_path / "problems/twice.py", PROBLEM)
    write(tmp_path / "solutions/twice/a.py", SOLUTION)
    write(tmp_path / "results.jsonl", ROWS)
    (tmp_path / "folder.html").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Runs a command that is refused and returns its only line."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("problems: ")]
    assert out == "" and len(lines) == 1 and lines[0].startswith("inlinebench"), err
    return lines[0]


ARGUMENTS = [
    ("run --min-calls 0", "--min-calls 0: write a positive integer"),
    ("run --min-calls -1", "--min-calls -1: write a positive integer"),
    ("run --min-calls 1.5", "--min-calls 1.5: write a positive integer"),
    (f"run --min-calls {HUGE}", "write a positive integer"),
    (f"run --seed {HUGE}", "write an integer"),
    (f"run --shard 1/{HUGE}", "--shard"),
    (f"list {HUGE}", "`inlinebench list` shows all names"),
    ("run --jobs 0", "--jobs 0: write a positive integer"),
    ("run --timeout -1", "write a positive number of seconds, at most 1000000"),
    ("run --timeout nan", "--timeout nan: write a positive number of seconds"),
    ("run --timeout 1e300", "--timeout 1e+300: write a positive number of seconds"),
    ("run --build-timeout inf", "--build-timeout inf: write a positive number of seconds"),
    ("run --problem-timeout 0", "--problem-timeout 0.0: write a positive number of seconds"),
    ("run --time-budget -0.5", "--time-budget -0.5: write a positive number of seconds"),
    ("run --host-memory 1e300", "--host-memory 1e+300: write a positive number of GiB"),
    ("run --max-memory -1", "--max-memory -1.0: write a positive number of GiB"),
    ("run --half-width 1", "--half-width 1.0: write a number between 0 and 1"),
    ("run --tol nan", "--tol nan: write 0 or a positive number"),
    ("run --cache-limit nan", "--cache-limit nan: write a size in GiB"),
    ("run --device gpu", "--device gpu: write auto, cuda, cuda:N or cpu"),
    ("run --device cuda:-1", "--device cuda:-1: write auto, cuda, cuda:N or cpu"),
    ("run --devices cpu,0", "--devices cpu,0: write all, GPU numbers"),
    ("run --devices 0,", "--devices 0,: write all, GPU numbers"),
    ("run --device cpu --devices cpu", "--device and --devices exclude each other"),
    ("run --shard 1/2/3", "--shard 1/2/3: write I/N, for example 2/8"),
    ("run --shard 0/2", "--shard 0/2: write I/N, for example 2/8"),
    ("run --set =3", "--set =3: write NAME=VALUE"),
    ("run --set N=x", "'x' is not a Python literal"),
    ("run --set N=[1", "'[1' is not a Python literal"),
    ("run --set N=1e999", "'1e999' is not a Python literal"),
    ("run --set N=3 --shape small", "--set and --shape exclude each other"),
    ("run --baseline solution:", "write one of eager, compile, compile-max, solution:NAME"),
    ("run --executor slurm", "--executor slurm: write one of local, ray"),
    ("run --resume", "--resume needs --out FILE"),
    ("run --all-blocks", "--all-blocks needs --response FILE"),
    ("run --trust --require-sandbox", "--trust and --require-sandbox exclude each other"),
    ("run matmul_diag", "/problems, which hides the bundled problems; add --problems /"),
    ("run --strict=1", "ignored explicit argument '1'"),
    ("run twice --response folder.html", "--response folder.html: Is a directory; name a file with a response"),
    ("run --out o --junit ./o", "--out and --junit are the same file"),
    ("build --arch native", "--arch native: write compute capabilities such as 90"),
    ("build --arch 90,", "write compute capabilities such as 90"),
    ("list --level 9", "no problem of level 9; there are levels none and tags none"),
    ("list problems/none.py", "no problem 'problems/none.py'; there is no such file"),
    ("list [", "no problem '['"),
    (f"init {'x' * 300}", "write a name of up to 100 letters"),
    ("init a/b", "init: a/b: write a name"),
    ("init twice", "problems/twice.py already exists: choose another name"),
    ("schema --full", "unknown option --full"),
    ("cache prune --limit nan", "--limit nan: write a size in GiB"),
    ("cache clear --cache .", "which is not part of a cache, so nothing is removed"),
    ("report results.jsonl -o folder.html", "folder.html: cannot be written (Is a directory)"),
    ("report results.jsonl -o r.pdf", "r.pdf: unknown kind of report; choose from .html"),
    (f"report results.jsonl -o {'n' * 300}.md", "cannot be written (File name too long)"),
    ("report results.jsonl --history", "--history needs several files, one for each run; name the earliest first"),
    ("report results.jsonl results.jsonl --history -o r.md", "r.md: --history is printed, or written as .html"),
    ("report results.jsonl results.jsonl --history --sources .", "--sources and --history exclude each other"),
    ("report results.jsonl none.jsonl --history", "none.jsonl: No such file or directory"),
    ("report results.jsonl -o r.html --sources none", "--sources none: no such folder"),
    ("merge results.jsonl -o results.jsonl", "results.jsonl already exists: name another file"),
    ("compare results.jsonl results.jsonl --markdown results.jsonl", "results.jsonl: is one of the input files"),
]


@pytest.mark.parametrize(("arguments", "said"), ARGUMENTS, ids=lambda text: text[:40])
def test_arguments_are_refused_in_one_line(
    here: Path, arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(here)
    assert said in error(capsys, *arguments.split())
    assert contents(here) == before


FILES = {
    "array": (f"[{','.join(ROWS.splitlines())}]".encode(), "line 1: not a result of schema"),
    "bytes": (bytes(range(256)), "line 1: not JSON: "),
    "compressed": (gzip.compress(ROWS.encode()), "line 1: not JSON: "),
    "utf-16": (ROWS.encode("utf-16"), "line 1: not JSON: "),
    "text": (b"hello", "line 1: not JSON: 'hello'"),
    "on one line": (ROWS.replace("\n", "").encode(), "line 1: not JSON: "),
    "zeros within a line": (ROWS.replace("p1", "p\0").encode(), "line 2: not JSON: "),
    "NaN": (ROWS.replace('"speedup": {"median": 1.5', '"speedup": {"median": NaN').encode(), "line 1: the median nan"),
    "deep": (b'{"schema": 2, "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 1: nested too deeply"),
    "later": (json.dumps({**ROW, "schema": SCHEMA + 1}).encode(), f"schema {SCHEMA + 1} is of a later inlinebench"),
    "earlier": (json.dumps({**ROW, "schema": 0}).encode(), "line 1: not a result of schema"),
    "no schema": (json.dumps({"problem": "p"}).encode(), "line 1: not a result of schema"),
    "another verdict": (json.dumps({**ROW, "verdict": "PASSED"}).encode(), "'PASSED' is not a valid Verdict"),
    "null": (json.dumps({**ROW, "seed": None}).encode(), "expected int, got None"),
    "no such shard": (json.dumps({**ROW, "shard": {"part": 3, "parts": 2, "rows": 4}}).encode(), "no part 3 of 2"),
    "huge number": (json.dumps({**ROW, "seed": 1}).replace('"seed": 1', f'"seed": {HUGE}').encode(), "4300 digits"),
}
"""Files that are not results, and what is said about them."""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["report FILE", "merge results.jsonl FILE -o new.jsonl"])
def test_a_file_that_is_not_results_is_refused_with_its_line(
    here: Path, name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, said = FILES[name]
    (here / "bad.jsonl").write_bytes(data)
    line = error(capsys, *command.replace("FILE", "bad.jsonl").split())
    assert said in line and line.count("bad.jsonl") == 1 and "name a file that --out wrote" in line
    assert not (here / "new.jsonl").exists()


READABLE = {
    "byte order mark": b"\xef\xbb\xbf" + ROWS.encode(), "CRLF": ROWS.replace("\n", "\r\n").encode(),
    "blank lines": b"\n \n" + ROWS.encode(), "no newline at the end": ROWS.encode().rstrip(),
    "zeros after the end": ROWS.encode() + bytes(100),
}


@pytest.mark.parametrize("name", READABLE)
def test_a_file_of_results_may_look_a_little_different(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "odd.jsonl").write_bytes(READABLE[name])
    assert main(["merge", "odd.jsonl", "-o", "new.jsonl"]) == 0
    assert capsys.readouterr() == ("3 results in new.jsonl\n", UNSHARDED)


@pytest.mark.parametrize("kept", [20, 60, 200, -3])
def test_a_half_written_line_is_skipped_with_one_line(
    here: Path, kept: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "half.jsonl").write_text(ROWS + ROWS.splitlines()[0][:kept])
    assert main(["merge", "half.jsonl", "-o", "new.jsonl"]) == 0
    assert capsys.readouterr().err == f"half.jsonl, line 4: half-written, skipped\n{UNSHARDED}"


@pytest.mark.parametrize("name", ["solutions/twice/a.py", "page.html", "zip"])
def test_results_are_not_added_to_a_file_of_another_kind(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "page.html").write_text("\n<html></html>")
    (here / "zip").write_bytes(b"PK\x03\x04")
    before = contents(here)
    assert f"--out {name}: contains something other than results" in error(
        capsys, "check", "twice", "--device", "cpu", "--out", name)
    assert contents(here) == before


PYPROJECT = {
    'min-calls = "many"': "--min-calls many: write a positive integer",
    "min-call = 3": "has the unknown key 'min-call'; did you mean min-calls?",
    "version = true": "has the unknown key 'version'",
    'strict = "yes"': "strict = 'yes': write true or false",
    "tag = [[1]]": "write what follows --tag on a command line",
    "calls = 3\ncalls = 4": "Cannot overwrite a value",
    "seed = 1979-05-27": "write what follows --seed on a command line",
}


@pytest.mark.parametrize("text", PYPROJECT)
def test_defaults_of_a_project_are_refused_in_one_line(
    here: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pyproject.toml").write_text(f"[tool.inlinebench]\n{text}\n")
    line = error(capsys, "run")
    assert PYPROJECT[text] in line and "did you mean version?" not in line


@pytest.mark.parametrize(("data", "said"), [
    (b"[tool]\ninlinebench = 3  # tool.inlinebench", "tool.inlinebench = 3: write a table, [tool.inlinebench]"),
    (b"\xff\xfe[tool.inlinebench]", "can't decode byte 0xff"),
    (b"[tool.inlinebench", "correct its table [tool.inlinebench]"),
])
def test_a_pyproject_that_cannot_be_read_is_refused_in_one_line(
    here: Path, data: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pyproject.toml").write_bytes(data)
    assert said in error(capsys, "run")


VARIABLES = {
    "INLINEBENCH_CACHE_LIMIT=much": "INLINEBENCH_CACHE_LIMIT=much: write a size in GiB",
    "INLINEBENCH_HEADERS=none": "INLINEBENCH_HEADERS=none: write auto or full",
    "INLINEBENCH_CACHE=~nobody.here/x": "the home folder is unknown; name the cache's folder with --cache",
}


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.usefixtures("here")
def test_variables_are_refused_in_one_line(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value)
    assert VARIABLES[variable] in error(capsys, "run")


@pytest.mark.usefixtures("here")
def test_a_home_that_is_not_known_is_not_needed_with_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INLINEBENCH_CACHE", "~nobody.here/x")
    assert main(["cache", "show", "--cache", "none"]) == 0


def test_unusable_problem_files_are_listed_as_such(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(os.fsencode(here / "problems") + b"/b\xff.py", "w") as file:
        file.write(PROBLEM)
    os.mkfifo(here / "problems/fifo.py")
    (here / "problems/mark.py").write_bytes(b"\xef\xbb\xbf" + PROBLEM.encode())
    (here / "problems/zeros.py").write_bytes(PROBLEM.encode() + b"\0")
    (here / "problems/latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe4\n" + PROBLEM.encode())
    assert main(["list"]) == 0
    rows = {row.split()[0]: row for row in capsys.readouterr().out.splitlines()}
    assert r"b'b\xff.py': the name is not UTF-8; rename the file" in rows.pop(r"b\udcff")
    for name, said in {"fifo": "fifo.py: not a regular file", "mark": "full small", "latin": "full small",
                       "zeros": "zeros.py: source code string cannot contain null bytes"}.items():
        assert said in rows[name]
