"""Recognizes failures for which nothing but this machine is responsible: without Triton, or without a GPU.

The solution's text decides whether it may be one, because a solution can raise every error itself.
"""

from __future__ import annotations

import re
from pathlib import Path

from inlinebench.evaluation.failures import Failed
from inlinebench.results.result import Verdict
from inlinebench.wire.lacking_triton import LACKS_TRITON, lacks_triton

NO_GRAPHS = "unsupported on the CPU (run with a CUDA device): CUDA graphs"
"""What a CUDA graph made in Python raises on the CPU."""
_MAKES_GRAPHS = re.compile(r"\bCUDAGraph\b|\bcuda\.graph|\bmake_graphed_callables\b|\bgraph_pool_handle\b")


def skipped(failure: Failed | None, solution: Path | None) -> Failed | None:
    """Returns a failure, or that the solution is skipped if its text shows that it cannot run here."""
    if failure is None or solution is None:
        return failure
    if LACKS_TRITON in failure.reason and lacks_triton(solution):
        return Failed(Verdict.SKIPPED, LACKS_TRITON)
    if NO_GRAPHS in failure.reason and _MAKES_GRAPHS.search(solution.read_text(encoding="utf-8", errors="replace")):
        return Failed(Verdict.SKIPPED, f"the solution makes CUDA graphs in Python: {NO_GRAPHS}")
    return failure
