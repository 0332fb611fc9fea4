"""What a page leaves out of results that are too long for it."""

from __future__ import annotations

import pytest

from inlinebench.errors import UsageError
from inlinebench.report.page import limits
from inlinebench.report.page.limits import fitting

from .samples import result


def test_logs_that_fit_together_are_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CHARACTERS", 200)
    given = [result("a/s", log="x" * 150), result("b/s"), result("c/s", log="y" * 50)]
    assert fitting(given) == given


def test_the_end_of_a_long_log_is_kept_and_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CHARACTERS", 200)
    long, short = fitting([result("a/s", log="x" * 150 + "the error"), result("c/s", log="y" * 90)])
    assert long.log == "… (59 characters are left out; the file of results has them)\n" + "x" * 91 + "the error"
    assert short.log == "y" * 90


def test_too_many_results_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_RESULTS", 2)
    fitting([result("a/s")] * 2)
    with pytest.raises(UsageError, match=r"at most 2 results, not 3; name fewer files, or write a \.csv file"):
        fitting([result("a/s")] * 3)
