"""What is said about calls on the same inputs."""

from __future__ import annotations

from inlinebench.report.page.details import Listing, details
from inlinebench.report.page.entries import columns_of
from inlinebench.report.repeats import findings, sentences, share
from inlinebench.report.rows import Cell, arrange
from inlinebench.report.terminal.feedback import feedback
from inlinebench.report.terminal.table import table
from inlinebench.results.repeats import Repeatability, Varying

from .samples import result

EQUAL = Repeatability(40, 40, 2, True, (), True, True)
VARIES = Repeatability(40, 19, 2, False, (Varying("output", 2806, 25600, 1024), Varying("output 1", 1, 8)))
BY_ROWS = Repeatability(40, 40, 2, True, (), False, False)


def test_equal_bits_are_said_with_how_they_were_compared() -> None:
    assert list(sentences(EQUAL)) == [
        "bitwise equal in 40 of 40 calls on the same inputs, in 2 processes, at different addresses",
        "a row has the same bits if the rows of the batch are in another order",
        "the first row has the same bits in a batch of its own"]
    assert not list(findings(EQUAL))


def test_what_varies_is_said_with_its_distance_if_it_has_one() -> None:
    assert list(sentences(VARIES)) == [
        "bitwise equal in 19 of 40 calls on the same inputs, in 2 processes, always at the same address",
        "output: the bits of 2,806 of 25,600 elements vary, by up to 1,024 ULP",
        "output 1: the bits of 1 of 8 elements vary"]


def test_a_row_that_depends_on_its_batch_is_said() -> None:
    assert list(findings(BY_ROWS)) == ["a row has other bits if the rows of the batch are in another order",
                                       "the first row has other bits in a batch of its own"]


def test_nothing_is_said_about_rows_that_nothing_is_known_about() -> None:
    assert len(list(sentences(Repeatability(40, 40, 2, True)))) == 1


def test_the_table_has_a_column_only_with_repeated_calls_and_remarks_on_what_varies() -> None:
    text = table([result("p/equal", repeats=EQUAL), result("p/varies", repeats=VARIES), result("p/unknown")])
    assert "bitwise equal" in text.splitlines()[0]
    assert share(EQUAL) in text and share(VARIES) in text
    assert [line.partition(":")[0] for line in text.splitlines() if "the bits of" in line] == ["p/varies"] * 2
    assert "bitwise equal" not in table([result()])


def test_a_page_sorts_the_column_by_the_share_of_equal_calls() -> None:
    arranged = arrange([result("p/equal", repeats=EQUAL), result("p/varies", repeats=VARIES), result("p/unknown")])
    names = list(columns_of(arranged))
    assert names.index("bitwise equal") == names.index("error / tolerance") + 1
    place = list(arranged.columns).index("bitwise equal")
    assert [row.cells[place] for row in arranged.rows] == [
        Cell("40 of 40", "1.0"), Cell("—", ""), Cell("19 of 40", "0.475")]


def test_feedback_and_the_details_of_a_page_have_all_sentences() -> None:
    found = result("p/s", repeats=VARIES)
    assert all(text in feedback(found) for text in sentences(VARIES))
    listed = Listing("Calls on the same inputs", tuple(sentences(VARIES)))
    assert listed in details(found, None, environment=False).facts
