"""Which kernels a call of each solution ran, for `--profile`."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.records.result import Result
from inlinebench.report.text import grid, one_line, significant

LONGEST_NAME = 80


def kernel_tables(results: Sequence[Result]) -> str:
    """For each result that knows its kernels a heading and a table: name, origin, time, share of the GPU's time."""
    return "\n\n".join(_kernel_table(result) for result in results if result.kernels is not None)


def _kernel_table(result: Result) -> str:
    assert result.kernels is not None
    heading = one_line(f"{result.problem}/{result.solution} ({result.shape}), one call:")
    rows = [[one_line(each.name, LONGEST_NAME), each.origin, significant(each.ms), f"{each.share:.1%}"]
            for each in result.kernels.top]
    return f"{heading}\n{grid(['kernel', 'origin', 'ms', 'share'], rows, ['left', 'left', 'decimal', 'right'])}"
