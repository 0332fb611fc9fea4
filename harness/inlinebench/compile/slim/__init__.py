"""Headers that stand before torch's own on the include path and bring only what kernels use, from torch's own headers.

Most of what `torch/extension.h` includes is torch's C++ front end, which takes a compiler half a minute to read. Most
of the rest are TorchScript's types, which every operator's header brings by way of `ATen/DeviceGuard.h`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

SLIM_DIR = Path(__file__).resolve().parent
THRUST_DIR = SLIM_DIR.parent / "slim_thrust"
"""Stands before CUDA's own headers, for sources that have nothing to do with thrust's complex numbers."""
_CALL = re.compile(r"\b(?:at|torch)::([a-z_]\w*)\s*\(")
_OWN = {
    re.compile(r"\bdevice_of\b"): "inlinebench/device_of.h",
    re.compile(r"\bglobalContext\b"): "inlinebench/context.h",
    re.compile(r"\brequires_grad\b"): "inlinebench/requires_grad.h",
    re.compile(r"\bTORCH_LIBRARY"): "torch/library.h",
}
"""What a source may say of what few need, and the header that brings it."""
_THRUST = re.compile(r"\b(?:thrust|cub|cccl|cuda/std|cuda\s*::\s*std)\b|complex", re.IGNORECASE)


def further_headers(sources: Sequence[str], include_dir: Path) -> list[str]:
    """What sources need beside the usual, by what they say: among it torch's headers of the operators that they call as
    `at::name(` or `torch::name(`, where there are such."""
    named = [header for word, header in _OWN.items() if any(word.search(source) for source in sources)]
    called = {match[1] for source in sources for match in _CALL.finditer(source)}
    names = sorted(called | {name.removesuffix("_out") for name in called})
    operators = [f"ATen/ops/{name}.h" for name in names if (include_dir / "ATen" / "ops" / f"{name}.h").is_file()]
    return [*named, *operators]


def needs_thrust(sources: Sequence[str]) -> bool:
    """Whether sources may use thrust's complex numbers, directly or by way of torch's or of another library."""
    return any(_THRUST.search(source) for source in sources)
