"""inlinebench: does a hand-written CUDA kernel compute what its PyTorch reference computes, and how much faster?

Importing this package imports neither torch nor any of the rooms below it, so that the command line answers at once.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inlinebench.version import __version__

if TYPE_CHECKING:
    from inlinebench.api import evaluate
    from inlinebench.records.result import Result, Verdict

# Torch does without NumPy, and so does the harness; torch says so whenever it is imported.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

__all__ = ["Result", "Verdict", "__version__", "evaluate"]
_RESULT = "inlinebench.records.result"
_HOMES = {"evaluate": "inlinebench.api", "Result": _RESULT, "Verdict": _RESULT}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
