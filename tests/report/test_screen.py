"""What is shown on a terminal: colours of verdicts, and a table that fits."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.report.terminal.outputs import report
from inlinebench.report.terminal.screen import Screen
from inlinebench.report.text import visible_length
from inlinebench.results.memory import Memory
from inlinebench.results.repeats import Repeatability
from inlinebench.results.result import Kernels, Verdict
from inlinebench.results.result_json import to_json
from inlinebench.results.times import Baseline, Roofline, Spread

from .samples import result, timing

SPREAD = Spread(1.0, 0.9, 1.1)
WIDE = [
    result("matmul_transposed_b/naive", kernels=Kernels(0.5), repeats=Repeatability(40, 40, 2, True),
           memory=Memory(1, 1), timing=replace(
        timing(2.0), wall_ms=SPREAD, roofline=Roofline(10, 10, 0.05, 0.01, "memory"),
        baselines=(Baseline("compile", SPREAD, SPREAD), Baseline("compile-max", SPREAD, SPREAD)))),
    result("matmul_diag/naive", Verdict.WRONG, reason="all differ"),
    result("matmul_diag/fast", Verdict.SKIPPED, reason="too large"),
]
ORDER = ["own kernels", "over compile-max", "over compile", "memory MiB", "bitwise equal", "wall ms",
         "% of roofline", "error / tolerance", "reference ms", "solution ms"]


def test_columns_are_left_out_in_order_until_the_table_fits() -> None:
    whole = report(WIDE)
    assert "Left out" not in whole and max(map(len, whole.splitlines())) > 150
    for width in range(200, 64, -7):
        text = report(WIDE, Screen(width=width))
        head = text.splitlines()[0]
        gone = [name for name in ORDER if f"  {name}" not in head]
        assert gone == ORDER[:len(gone)]
        assert (f"narrow: {', '.join(gone)}" in text) is bool(gone)
        lines = [line for block in (text.partition("\n\n")[0], text[text.index("\nsolution "):]) for line in
                 block.splitlines() if "geometric" not in line]
        assert max(map(len, lines)) <= width


def test_verdicts_are_coloured_and_colours_take_no_room() -> None:
    plain, coloured = report(WIDE), report(WIDE, Screen(colour=True))
    assert "\x1b[32mpassed\x1b[0m" in coloured and "\x1b[31mwrong\x1b[0m" in coloured
    assert "\x1b[33mskipped\x1b[0m" in coloured
    assert [visible_length(line) for line in coloured.splitlines()] == [len(line) for line in plain.splitlines()]


@pytest.mark.parametrize(("environment", "coloured"), [
    ({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False),
])
def test_a_terminal_gets_colours_and_a_pipe_does_not(
    tmp_path: Path, environment: dict[str, str], coloured: bool
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(to_json(each) + "\n" for each in WIDE))
    command = [sys.executable, "-m", "inlinebench.cli.main", "report", str(rows)]
    plain = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    given = {**plain, "TERM": "xterm", "COLUMNS": "80", **environment}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, env=given) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0 and (b"\x1b[" in shown) is coloured
    assert max(map(visible_length, shown.decode().split("\r\n\r\n")[0].splitlines())) <= 80
    piped = subprocess.run(command, capture_output=True, text=True, env=given, check=True).stdout
    assert "\x1b" not in piped and "own kernels" in piped
