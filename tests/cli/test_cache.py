"""`inlinebench cache`, and the limit that a run is given."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.cli.cache import main, size_text
from inlinebench.cli.exits import ended
from inlinebench.compile.cache import Cache
from inlinebench.compile.cache.prune import IN_USE_S
from inlinebench.errors import UsageError
from inlinebench.options import CACHE_LIMIT_GIB, Options

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with three libraries of 1, 2 and 3 MiB, the last used 3, 2 and 1 days ago, a note and peaks."""
    cache = Cache(tmp_path / "cache")
    for size, key in enumerate(("aa" * 32, "bb" * 32, "cc" * 32), start=1):
        with cache.workshop() as workshop:
            (workshop / f"kernel{size}.so").write_bytes(bytes(size * MIB))
            library = cache.store(key, workshop / f"kernel{size}.so")
        used = time.time() - (4 - size) * 24 * IN_USE_S
        os.utime(library.parent, (used, used))
        cache.remember(key, [library])
    (cache.folder / "peaks").mkdir()
    (cache.folder / "peaks" / "gpu.json").write_text("{}")
    return cache.folder


def said(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0, **environment: str) -> str:
    """What the command prints, after a look at its exit status; a refusal is one line."""
    assert ended("inlinebench cache", lambda: main(list(map(str, arguments)), environment)) == status
    out, error = capsys.readouterr()
    assert (out == "") == bool(status) and (error == "") == (not status)
    assert not status or error.count("\n") == 1
    return (out or error).rstrip("\n")


def test_show_counts_by_kind_and_names_the_largest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "show", "--cache", folder)
    lines = {line.split("  ")[0]: " ".join(line.split()) for line in text.splitlines()}
    assert text.splitlines()[0] == str(folder)
    assert lines["built libraries"].startswith("built libraries 3 6.0 MiB 20")
    assert lines["records of builds"].startswith("records of builds 3 ")
    assert lines["peaks of GPUs"].startswith("peaks of GPUs 1 2 B ")
    assert lines["all"].startswith("all 7 6.0 MiB")
    assert "CUDA on the CPU" not in text
    largest = text.partition("largest")[2].splitlines()[2:]
    assert [line.split()[:4] for line in largest] == [
        ["kernel3.so", "cc" * 6, "3.0", "MiB"], ["kernel2.so", "bb" * 6, "2.0", "MiB"],
        ["kernel1.so", "aa" * 6, "1.0", "MiB"]]


def test_looking_uses_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime for path in folder.rglob("*")}
    said(capsys, "show", "--cache", folder)
    assert {path: path.stat().st_mtime for path in folder.rglob("*")} == before


def test_prune_keeps_what_was_used_last(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limit = 5.5 / 1024
    assert said(capsys, "prune", "--cache", folder, "--limit", limit) == (
        f"{folder}: removed 1 library, 1 note (1.0 MiB)")
    assert said(capsys, "prune", "--cache", folder, "--limit", limit) == f"{folder}: nothing to remove"
    assert not list(folder.glob("aa/*")) and list(folder.glob("bb/*")) and list(folder.glob("cc/*"))


def test_prune_says_why_it_stays_above_the_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache(folder).find("aa" * 32)
    text = said(capsys, "prune", "--cache", folder, "--limit", 0)
    assert text.startswith(f"{folder}: removed 2 libraries, 2 notes (5.0 MiB); 1.0 MiB remain")
    assert "last hour" in text


def test_prune_takes_the_limit_of_the_environment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing" in said(capsys, "prune", INLINEBENCH_CACHE=str(folder))
    assert "nothing" in said(capsys, "prune", "--limit", "inf", INLINEBENCH_CACHE=str(folder),
                             INLINEBENCH_CACHE_LIMIT="0")
    assert "3 libraries" in said(capsys, "prune", INLINEBENCH_CACHE=str(folder), INLINEBENCH_CACHE_LIMIT="0")
    assert "INLINEBENCH_CACHE_LIMIT=much: write a size in GiB" in said(
        capsys, "prune", INLINEBENCH_CACHE=str(folder), INLINEBENCH_CACHE_LIMIT="much", status=2)


def test_clear_empties_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "clear", "--cache", folder) == (
        f"{folder}: removed 3 libraries, 3 notes, 1 GPU's peaks (6.0 MiB)")
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert said(capsys, "clear", "--cache", folder) == f"{folder}: nothing to remove"
    assert said(capsys, "show", "--cache", folder) == f"{folder}: the cache is empty"


def test_clear_says_what_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Cache(folder).workshop():
        assert said(capsys, "clear", "--cache", folder).endswith("; 1 kept: running evaluations may need them")


@pytest.mark.parametrize("command", ["prune", "clear"])
def test_a_folder_that_is_no_cache_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (folder / "thesis.tex").write_text("")
    before = sorted(folder.rglob("*"))
    assert "'thesis.tex'" in (text := said(capsys, command, "--cache", folder, status=2)) and "--cache" in text
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", ["show", "prune", "clear"])
def test_folders_that_cannot_be_a_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    missing, file, opened = tmp_path / "missing", tmp_path / "file", tmp_path / "open"
    assert said(capsys, command, "--cache", missing) == f"{missing}: the cache is empty"
    assert not missing.exists()
    file.write_text("")
    assert "is not a folder" in said(capsys, command, "--cache", file, status=2)
    opened.mkdir()
    opened.chmod(0o777)
    assert "chmod go-w" in said(capsys, command, "--cache", opened, status=2)


@pytest.mark.parametrize("arguments", [[], ["burn"], ["prune", "--limit", "-1"], ["prune", "--limit", "nan"],
                                       ["clear", "--limit", "1"]])
def test_what_cannot_be_meant_leaves_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, *arguments, status=2).startswith("inlinebench cache: ")


def test_as_a_command_it_answers_without_torch(folder: Path) -> None:
    module = ["-X", "importtime", "-m", "inlinebench.cli.main"]
    command = [sys.executable, *module, "cache", "show", "--cache", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "kernel3.so" in run.stdout
    assert "tabulate" in run.stderr and "torch" not in run.stderr


def test_a_closed_pipe_is_not_an_error(folder: Path) -> None:
    command = f"{sys.executable} -m inlinebench.cli.main cache show --cache {folder} | true; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1.5 * MIB, "1.5 MiB"), (10 * 1024 * MIB, "10.0 GiB"),
    (5000 * 1024 * MIB, "5000.0 GiB"),
])
def test_sizes(size: float, text: str) -> None:
    assert size_text(size) == text


def test_a_run_s_limit_is_the_option_s_or_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"INLINEBENCH_CACHE_LIMIT": "2.5"}
    assert parse([], {}).cache_limit == CACHE_LIMIT_GIB
    assert parse([], environment).cache_limit == 2.5
    assert parse(["--cache-limit", "0.5"], environment).cache_limit == 0.5
    assert parse(["--cache-limit", "0"], {"INLINEBENCH_CACHE_LIMIT": "much"}).cache_limit == 0
    assert parse(["--cache-limit", "inf"], {}).cache_limit == float("inf")
    monkeypatch.setenv("INLINEBENCH_CACHE_LIMIT", "3")
    assert Options().cache_limit == 3


@pytest.mark.parametrize("text", ["much", "-1", "nan"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"INLINEBENCH_CACHE_LIMIT={text}: write a size in GiB"):
        parse([], {"INLINEBENCH_CACHE_LIMIT": text})
    with pytest.raises(UsageError, match=f"--cache-limit {float(text) if text == '-1' else text}: write a size in GiB"):
        parse(["--cache-limit", text], {})
