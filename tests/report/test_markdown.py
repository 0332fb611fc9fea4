from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.foreign import one_line
from inlinebench.report.formats.markdown import ROOM, code, document, table
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.results.times import Baseline, Spread, Timing

from .samples import FAILURES, any_result, check, result
from .thirty import HOSTILE, thirty

ONE = Spread(1.0, 0.9, 1.1)
_texts = st.text() | st.lists(st.sampled_from([*"`|\\<>&*_@#[]()'~ \t\n", "a", "é", "</code>"])).map("".join)


def cells(line: str) -> list[str]:
    """Returns the cells of a table's line, which are separated by pipes."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def shown(written: str) -> str:
    """Returns the rendered text of inline code. Fails unless `written` is exactly one piece of code."""
    if written.startswith("`"):
        found = re.fullmatch("`([^`]+)`", written)
        assert found and not set("|\\\n") & set(written)
        return found[1]
    found = re.fullmatch("<code>([A-Za-z0-9 ]*(?:&#[0-9]+;[A-Za-z0-9 ]*)*)</code>", written)
    assert found, written
    return html.unescape(found[1])


def test_a_comment_has_counts_summary_table_and_folded_reasons() -> None:
    text = table([result("p/good", speedup=2.0), result("p/bad", Verdict.WRONG, reason="off\nby one")])
    assert text == """\
**1 of 2 passed** · ❌ 1 wrong

| solution | tried | passed | mean speedup | fast_1 |
| --- | ---: | ---: | ---: | ---: |
| `bad` | 1 | 0 | — | 0% |
| `good` | 1 | 1 | 2.00 | 100% |

|  | problem | solution | verdict | error / tolerance | solution ms | speedup |
| --- | --- | --- | --- | ---: | ---: | ---: |
| ❌ | `p` | `bad` | wrong | — | — | — |
| ✅ | `p` | `good` | passed | 3.1e-07 / 1e-04 | 0.100 | 2.00 [1.98, 2.02] |

<details><summary>1 did not pass</summary>

- ❌ `p/bad`: wrong: `off`

</details>
"""


def test_a_document_has_the_environment_and_every_column() -> None:
    measured = result("p/good", speedup=2.0)
    assert measured.timing and measured.check
    flagged = replace(
        measured, environment=Environment("2.11", "0.1", gpu="H100 | 80GB", driver="580", cuda="13.0", peaks="copy"),
        timing=replace(measured.timing, flags=("launch-bound: 9 ms",)),
    )
    text = document([flagged, result("p/bad", Verdict.WRONG, reason="off")], "Results of a run")
    heading, environment, peaks, *_ = text.split("\n\n")
    assert heading == "# Results of a run"
    assert shown(environment.removeprefix("On ").partition(", driver")[0]) == "H100 | 80GB"
    assert "torch `2.11`" in environment and peaks == "Measured peaks: `copy`."
    assert "reference ms" in text and "reference ms" not in table([flagged])
    assert "- `p/good`: `launch-bound: 9 ms`" in text and "- ❌ `p/bad`: wrong: `off`" in text


@pytest.mark.parametrize("verdict", FAILURES)
def test_each_verdict_has_a_mark(verdict: Verdict) -> None:
    marks = {Verdict.SKIPPED: "⏭️", Verdict.PROBLEM_ERROR: "⚠️", Verdict.INTERNAL_ERROR: "⚠️"}
    assert f"- {marks.get(verdict, '❌')} `p/s`: {verdict}: `because`" in table([result("p/s", verdict)])


def test_levels_have_their_own_lines_in_the_summary() -> None:
    assert "| `s (level 2)` | 1 | 1 |" in table([result("p/s", level=1), result("q/s", level=2)])


def test_if_all_passed_there_is_no_folded_section() -> None:
    assert "<details>" not in table([result()])
    assert table([]) == "Nothing was evaluated.\n"


def test_the_speedup_over_the_library_solution_is_shown_and_a_slower_kernel_named() -> None:
    timing = Timing(ONE, ONE, ONE, baselines=(Baseline("library", ONE, Spread(0.85, 0.8, 0.9)),))
    slower = result("p/fast", timing=timing)
    assert "`over library`" in table([slower]) and "0.850 [0.800, 0.900]" in table([slower])
    remark = "- `p/fast`: `slower than the library solution: 0.850 [0.800, 0.900] times as fast`"
    assert remark in document([slower], "t").splitlines()


def test_names_mention_nobody_and_cannot_break_cells_or_code() -> None:
    timing = Timing(ONE, ONE, ONE, baselines=(Baseline("solution:a|b", ONE, ONE),))
    crashed = Result("a|b", "`c`", "full", "cuda:0", Verdict.CRASHED, HOSTILE)
    text = table([result("p/@reference", timing=timing), crashed])
    lines = [line for line in text.splitlines() if line.startswith("| ")][-4:]
    assert len({len(cells(line)) for line in lines}) == 1
    assert "| `@reference` |" in text and "@" not in text.replace("`@reference`", "")
    assert "<code>a&#124;b</code>" in text and "<code>&#96;c&#96;</code>" in text
    assert f"`{HOSTILE}`" in text


@given(_texts)
def test_code_shows_any_text_as_one_piece(text: str) -> None:
    line = one_line(text)
    assert shown(code(text)) == line if line else code(text) == "—"


@given(st.lists(any_result(), min_size=1, max_size=5))
def test_any_results_make_tables_with_equally_many_cells_in_each_line(results: list[Result]) -> None:
    text = table(results)
    text.encode()
    blocks = [[line for line in block.splitlines() if line.startswith("|")] for block in text.split("\n\n")]
    for lines in filter(None, blocks):
        assert len({len(cells(line)) for line in lines}) == 1
    assert f"of {len(results)} passed" in text


def test_a_long_comment_is_cut_and_says_how_much_is_left_out() -> None:
    many = [result(f"problem_{number}/s", Verdict.WRONG, reason="long " * 90) for number in range(2000)]
    text = table(many)
    assert len(text) <= ROOM
    rows, reasons = text.count("| ❌ |"), text.count("- ❌ ")
    assert f"{2000 - rows} more results are omitted." in text and f"- and {2000 - reasons} more" in text
    assert rows > 500 and reasons > 20
    assert "left out" not in table(thirty()) and "- and" not in table(thirty())


def test_the_error_is_shown_as_in_the_terminal_table() -> None:
    assert "3.1e-07 / 1e-04" in table([result(check=check(worst_error=3.1e-7))])
