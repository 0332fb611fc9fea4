"""Slim headers: replacements for torch's headers that include only what kernels use, from torch's own headers.

They come before torch's on the include path. Most of `torch/extension.h` is torch's C++ front end, which takes a
compiler half a minute to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

SLIM_DIR = Path(__file__).resolve().parent
THRUST_DIR = SLIM_DIR.parent / "slim_thrust"
"""Comes before CUDA's headers, for sources that do not use thrust's complex numbers."""
_CALL = re.compile(r"\b(?:at|torch)::([a-z_]\w*)\s*\(")
_OWN = {
    re.compile(r"\bdevice_of\b"): "inlinebench/device_of.h",
    re.compile(r"\bglobalContext\b"): "inlinebench/context.h",
    re.compile(r"\brequires_grad\b"): "inlinebench/requires_grad.h",
    re.compile(r"\bTORCH_LIBRARY"): "torch/library.h",
}
"""Rarely used words in sources, and the headers that they need."""
_THRUST = re.compile(r"\b(?:thrust|cub|cccl|cuda/std|cuda\s*::\s*std)\b|complex", re.IGNORECASE)


def further_headers(sources: Sequence[str], include_dir: Path) -> list[str]:
    """Returns the headers that sources need in addition, judged by the words in them. They include torch's headers of
    operators that sources call as `at::name(` or `torch::name(`."""
    named = [header for word, header in _OWN.items() if any(word.search(source) for source in sources)]
    called = {match[1] for source in sources for match in _CALL.finditer(source)}
    names = sorted(called | {name.removesuffix("_out") for name in called})
    operators = [f"ATen/ops/{name}.h" for name in names if (include_dir / "ATen" / "ops" / f"{name}.h").is_file()]
    return [*named, *operators]


def needs_thrust(sources: Sequence[str]) -> bool:
    """Whether sources may use thrust's complex numbers, directly or through torch or another library."""
    return any(_THRUST.search(source) for source in sources)
