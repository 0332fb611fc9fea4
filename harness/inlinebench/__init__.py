"""Checks hand-written CUDA kernels against their PyTorch references, and times them.

The public names are `evaluate`, `Evaluator`, `Client`, `Result` and `Verdict`. They are imported on first use:
importing this package imports neither torch nor any subpackage, so that the command line starts at once.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inlinebench.version import __version__

if TYPE_CHECKING:
    from inlinebench.api import evaluate
    from inlinebench.results.result import Result, Verdict
    from inlinebench.serve.client import Client
    from inlinebench.serve.evaluator import Evaluator

# The harness does not use NumPy, and torch warns at each import if NumPy is missing.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

__all__ = ["Client", "Evaluator", "Result", "Verdict", "__version__", "evaluate"]
_RESULT = "inlinebench.results.result"
_HOMES = {"evaluate": "inlinebench.api", "Result": _RESULT, "Verdict": _RESULT,
          "Client": "inlinebench.serve.client", "Evaluator": "inlinebench.serve.evaluator"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
