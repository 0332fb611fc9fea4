from __future__ import annotations

from inlinebench.report.terminal.outputs import Outputs, kernel_tables
from inlinebench.report.terminal.screen import PLAIN
from inlinebench.results.result import Kernels, KernelShare

from .samples import result


def test_each_result_with_kernels_has_a_table_of_them() -> None:
    own, copy = KernelShare("scale(float*)", "own", 0.0573, 0.9), KernelShare("Memcpy", "copy", 0.0064, 0.1)
    text = kernel_tables([result("p/known", kernels=Kernels(0.9, (own, copy))), result("p/unknown")])
    assert text.splitlines()[0] == "p/known (full), one call:"
    assert [line.split() for line in text.splitlines()[3:]] == [
        ["scale(float*)", "own", "0.0573", "90.0%"], ["Memcpy", "copy", "0.00640", "10.0%"]
    ]
    assert "unknown" not in text


def test_feedback_is_told_once_for_each_result_as_soon_as_it_is_there() -> None:
    with Outputs(None, None) as outputs:
        outputs.recall(result("p/old"))
        outputs.add(result("p/one"))
        old, one = outputs.feedback(PLAIN).split("\n\n")
        assert old.startswith("p/old ") and one.startswith("p/one ")
        assert outputs.feedback(PLAIN) == ""
        outputs.add(result("p/two"))
        assert outputs.feedback(PLAIN).startswith("\np/two ")
        assert outputs.feedback(PLAIN, ended=True) == ""


def test_feedback_leaves_library_solutions_out_unless_there_is_nothing_else() -> None:
    with Outputs(None, None) as outputs:
        outputs.add(result("p/library"))
        assert outputs.feedback(PLAIN) == ""
        assert outputs.feedback(PLAIN, ended=True).startswith("p/library ")
    with Outputs(None, None) as outputs:
        outputs.add(result("p/library"))
        outputs.add(result("p/fast"))
        assert outputs.feedback(PLAIN, ended=True).startswith("p/fast ")


def test_without_kernels_there_is_no_table() -> None:
    assert kernel_tables([result()]) == ""
