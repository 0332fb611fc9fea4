"""The command as a user calls it, a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inlinebench.cli.main import COMMANDS
from inlinebench.results.jsonl import read
from inlinebench.results.result import Environment, Result, Shard, Verdict
from inlinebench.results.result_json import to_json

from ..report.samples import result
from ..running import ROOT


def inlinebench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "inlinebench.cli.main", *map(str, arguments)], cwd=ROOT,
                          check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def write(path: Path, *results: Result, tail: str = "") -> Path:
    path.write_text("".join(to_json(each) + "\n" for each in results) + tail)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    done = inlinebench(name, "--help")
    assert done.returncode == 0 and "usage:" in done.stdout


@pytest.mark.parametrize(("arguments", "status"), [
    ([], 2), (["--help"], 0), (["--version"], 0), (["-V"], 0), (["fly"], 2),
])
def test_without_a_command_there_is_a_list_of_them(arguments: list[str], status: int) -> None:
    done = inlinebench(*arguments)
    assert done.returncode == status
    assert "compare" in done.stdout + done.stderr or "inlinebench 0" in done.stdout
    assert ("unknown command 'fly'" in done.stderr) is (arguments == ["fly"])


def test_list_shows_problems_of_a_level_and_a_tag() -> None:
    everything = inlinebench("list").stdout
    assert everything == inlinebench("run", "--list").stdout
    chosen = inlinebench("list", "--level", "1", "--tag", "reduction").stdout
    assert "row_sum" in chosen and "row_sum" in everything
    assert "matmul_diag" in everything and "matmul_diag" not in chosen


def test_list_shows_the_problems_that_names_select() -> None:
    one = inlinebench("list", "row_sum")
    assert one.returncode == 0 and "row_sum" in one.stdout and "matmul_diag" not in one.stdout
    assert one.stdout == inlinebench("run", "--list", "row_sum").stdout
    several = inlinebench("list", "matmul_*").stdout
    assert "matmul_diag" in several and "row_sum" not in several


@pytest.mark.parametrize(("arguments", "said"), [
    (["row_sun"], "no problem 'row_sun'; did you mean row_sum"),
    (["--tag", "none_such"], "no problem of tag none_such"),
    (["--level", "77"], "no problem of level 77; there are levels"),
])
def test_list_refuses_what_selects_nothing(arguments: list[str], said: str) -> None:
    done = inlinebench("list", *arguments)
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


@pytest.mark.parametrize(("command", "option"), [("check", "--baseline"), ("build", "--out"), ("list", "--min-calls")])
def test_a_command_refuses_the_options_of_another(command: str, option: str) -> None:
    done = inlinebench(command, option, "x")
    assert done.returncode == 2 and f"unknown option {option}; it is an option of inlinebench run" in done.stderr


def test_compare_is_a_gate(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", result("a/b", speedup=2.0), result("a/c", speedup=2.0))
    new = write(tmp_path / "new.jsonl", result("a/b", speedup=3.0), result("a/c", speedup=1.0))
    worse = inlinebench("compare", old, new, "--markdown", tmp_path / "t.md")
    assert worse.returncode == 1 and "1 slower, 1 faster" in worse.stdout
    assert (tmp_path / "t.md").read_text().startswith("| problem |")
    assert inlinebench("compare", old, old).returncode == 0
    better = write(tmp_path / "better.jsonl", result("a/b", speedup=3.0), result("a/c", speedup=2.0))
    assert inlinebench("compare", old, better).returncode == 0


def test_library_solutions_are_compared_and_do_not_decide(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", result("a/library", speedup=2.0), result("a/b", speedup=2.0))
    new = write(tmp_path / "new.jsonl", result("a/library", speedup=1.0), result("a/b", speedup=2.0))
    done = inlinebench("compare", old, new)
    assert done.returncode == 0 and "1 slower, 1 same" in done.stdout


def test_compare_fails_if_rows_are_gone_unless_they_may_be(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", result("a/b"), result("a/c"))
    empty = write(tmp_path / "empty.jsonl")
    gone = inlinebench("compare", old, empty)
    assert gone.returncode == 1 and "2 gone" in gone.stdout
    assert inlinebench("compare", old, empty, "--allow-gone").returncode == 0
    worse = write(tmp_path / "worse.jsonl", result("a/b", Verdict.WRONG))
    assert inlinebench("compare", old, worse, "--allow-gone").returncode == 1


@pytest.mark.parametrize(("verdict", "status"), [(Verdict.PASSED, 0), (Verdict.SKIPPED, 0), (Verdict.WRONG, 1)])
def test_compare_fails_if_a_new_row_fails(tmp_path: Path, verdict: Verdict, status: int) -> None:
    old = write(tmp_path / "old.jsonl", result("a/b"))
    new = write(tmp_path / "new.jsonl", result("a/b"), result("a/c", verdict))
    done = inlinebench("compare", old, new)
    assert done.returncode == status and ("1 new, failing" in done.stdout) is bool(status)


@pytest.mark.parametrize("command", [("compare", "empty", "empty"), ("compare", "empty", "some"), ("report", "empty"),
                                     ("report", "empty", "empty", "--history"), ("merge", "empty", "-o", "new")])
def test_a_file_without_results_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    files = {"empty": write(tmp_path / "empty"), "some": write(tmp_path / "some", result("a/b"))}
    done = inlinebench(*(files.get(word, word) for word in command))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "name files written by --out" in done.stderr


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), ("nonsense\n", "line 1"), ("{}\n", "line 1")])
def test_what_is_no_file_of_results_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "in.jsonl"
    if text is not None:
        path.write_text(text)
    done = inlinebench("compare", path, path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_half_written_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.jsonl", result("a/b"))
    cut = write(tmp_path / "cut.jsonl", result("a/b"), tail=to_json(result("a/c"))[:40])
    done = inlinebench("compare", whole, cut)
    assert done.returncode == 0 and "1 same" in done.stdout and "half-written" in done.stderr


def test_other_gpus_are_refused_unless_told(tmp_path: Path) -> None:
    files = [write(tmp_path / gpu, result("a/b", speedup=2.0, environment=Environment("2.11", "0.1", gpu=gpu)))
             for gpu in ("H100", "A100")]
    refused = inlinebench("compare", *files)
    assert refused.returncode == 2 and "--any-gpu" in refused.stderr
    assert inlinebench("compare", *files, "--any-gpu").returncode == 0


def test_merged_shards_are_one_file_with_every_row_once(tmp_path: Path) -> None:
    rows = [result("2_b/x", key="1"), result("10_a/x", key="2"), result("2_b/x", Verdict.WRONG, shape="odd", key="3")]
    first = write(tmp_path / "1", rows[1], rows[0])
    second = write(tmp_path / "2", rows[2], rows[0], tail='{"schema": 1, "pro')
    done = inlinebench("merge", first, second, "-o", tmp_path / "all")
    assert done.returncode == 0 and "3 results" in done.stdout and "half-written" in done.stderr
    assert list(read(tmp_path / "all")) == [rows[0], rows[2], rows[1]]


def shards(*counts: int) -> list[list[Result]]:
    """The results of the shards of a run with five results, of which only so many are there."""
    found = []
    for part, count in enumerate(counts, 1):
        shard = Shard(part, len(counts), 5)
        names = [f"p/{number}" for number in range(5)][shard.span]
        found.append([result(name, key=name, shard=shard) for name in names[:count]])
    return found


@pytest.mark.parametrize(("counts", "said"), [
    ((2, 0, 2), ["shard 2/3 has 0 of 2 results; run it again with --shard 2/3"]),
    ((1, 1, 2), ["shard 2/3 has 1 of 2 results; run it again with --shard 2/3 --resume"]),
    ((1, 2, 0), ["shard 3/3 has 0 of 2 results; run it again with --shard 3/3"]),
    ((1, 2, 2), []),
    ((0, 1, 0, 1, 1, 0, 1, 1), []),  # more shards than results
])
def test_merge_names_missing_and_incomplete_shards(tmp_path: Path, counts: tuple[int, ...], said: list[str]) -> None:
    files = [write(tmp_path / str(part), *rows) for part, rows in enumerate(shards(*counts), 1)]
    done = inlinebench("merge", *files, "-o", tmp_path / "all")
    assert [line.removeprefix("inlinebench merge: ") for line in done.stderr.splitlines()] == said
    assert done.returncode == int(bool(said)) and (tmp_path / "all").exists()


def test_merging_overwrites_nothing(tmp_path: Path) -> None:
    rows = write(tmp_path / "1", result("a/b"))
    done = inlinebench("merge", rows, "-o", rows)
    assert done.returncode == 2 and "already exists" in done.stderr
    assert list(read(rows)) == [result("a/b")]


def test_results_of_other_sources_stand_side_by_side_and_that_is_said(tmp_path: Path) -> None:
    files = [write(tmp_path / key, result("a/b", key=key)) for key in ("1", "2")]
    done = inlinebench("merge", *files, "-o", tmp_path / "all")
    assert done.returncode == 0 and "a/b full" in done.stderr and "--shard" in done.stderr
    assert len(list(read(tmp_path / "all"))) == 2


@pytest.mark.parametrize(("suffix", "begins"), [(".html", "<!doctype html>"), (".md", ""), (".csv", '"problem",'),
                                                (".xml", "<?xml")])
def test_a_report_is_of_the_kind_that_its_name_says(tmp_path: Path, suffix: str, begins: str) -> None:
    rows = write(tmp_path / "rows", result("a/b", Verdict.WRONG, reason="OUTDATED"), result("a/b"), result("a/c"))
    out = tmp_path / f"out{suffix}"
    done = inlinebench("report", rows, "-o", out)
    assert done.returncode == 0 and "2 results" in done.stdout, done.stderr
    assert out.read_text().lower().lstrip().startswith(begins) and "OUTDATED" not in out.read_text()


def test_a_report_without_a_file_is_the_table(tmp_path: Path) -> None:
    done = inlinebench("report", write(tmp_path / "rows", result("a/b", speedup=2.0)))
    assert done.returncode == 0 and "2.00 [1.98, 2.02]" in done.stdout and "fast_1.5" in done.stdout


@pytest.mark.parametrize(("files", "names"), [
    (("2.jsonl", "1.jsonl"), "2 and 1"), (("x/rows.jsonl", "y/rows.jsonl"), "x and y"),
    (("a/x/rows", "b/x/rows"), "{folder}/a/x/rows and {folder}/b/x/rows")])
def test_a_history_tells_between_which_runs_a_verdict_changed(
    tmp_path: Path, files: tuple[str, str], names: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    written = write(tmp_path / files[0], result("a/b")), write(tmp_path / files[1], result("a/b", Verdict.WRONG))
    done = inlinebench("report", *written, "--history")
    assert f"a/b: passed -> wrong between {names.format(folder=tmp_path)}; because" in done.stdout, done.stderr
    done = inlinebench("report", *written, "--history", "-o", tmp_path / "o.html")
    assert done.returncode == 0 and done.stdout.startswith("1 rows over 2 runs in "), done.stderr
    assert (tmp_path / "o.html").read_text().startswith("<!doctype html>")


def test_a_page_shows_the_sources_of_a_folder_and_of_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "solutions" / "a").mkdir(parents=True)
    (tmp_path / "solutions" / "a" / "b.py").write_text("MARK_OF_B = 1")
    (tmp_path / "secret.py").write_text("MARK_OF_SECRET = 1")
    rows = write(tmp_path / "rows", result("a/b"), result("../secret", Verdict.WRONG))
    assert inlinebench("report", rows, "-o", tmp_path / "o.html", "--sources", tmp_path / "solutions").returncode == 0
    page = (tmp_path / "o.html").read_text()
    assert "MARK_OF_B" in page and "MARK_OF_SECRET" not in page


def test_a_page_of_two_files_is_of_the_last_one_with_what_changed(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", result("a/b", speedup=2.0), result("a/gone"))
    after = write(tmp_path / "after.jsonl", result("a/b", speedup=1.0))
    done = inlinebench("report", before, after, "-o", tmp_path / "o.html")
    assert done.returncode == 0 and "1 results" in done.stdout, done.stderr
    page = (tmp_path / "o.html").read_text()
    assert "Changes since before.jsonl" in page and "1 gone, 1 slower" in page and page.count('id="r') == 1 + 1
    done = inlinebench("report", before, after, "-o", tmp_path / "o.md")
    assert "2 results" in done.stdout


@pytest.mark.parametrize("arguments", [("-o", "out.pdf"), ("-o", "x.html", "--sources", "none")])
def test_a_report_that_can_not_be_meant_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = inlinebench("report", write(tmp_path / "rows", result("a/b")), *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr
