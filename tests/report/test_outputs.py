from __future__ import annotations

from inlinebench.report.terminal.outputs import Outputs, kernel_tables
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


def test_feedback_leaves_library_solutions_out_unless_there_is_nothing_else() -> None:
    with Outputs(None, None) as outputs:
        outputs.add(result("p/library"))
        assert outputs.feedback().startswith("p/library ")
        outputs.add(result("p/fast"))
        assert outputs.feedback().startswith("p/fast ") and "p/library" not in outputs.feedback()


def test_without_kernels_there_is_no_table() -> None:
    assert kernel_tables([result()]) == ""
