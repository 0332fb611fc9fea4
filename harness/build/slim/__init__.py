"""Headers that stand before torch's own on the include path and bring only what kernels use, from torch's own headers.

Most of what `torch/extension.h` includes is torch's C++ front end, which takes a compiler half a minute to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

SLIM_DIR = Path(__file__).resolve().parent
_CALL = re.compile(r"\b(?:at|torch)::([a-z_]\w*)\s*\(")
_MISSING = re.compile(
    r"not a member of|has no member|was not declared|is undefined|incomplete type|does not name a|no match for|"
    r"no matching function|no instance of|No such file|has not been declared|no operator|is not a template"
)


def operator_headers(sources: Iterable[str], include_dir: Path) -> list[str]:
    """Torch's headers of the operators that sources call as `at::name(` or `torch::name(`, where there are such."""
    called = {match[1] for source in sources for match in _CALL.finditer(source)}
    names = sorted(called | {name.removesuffix("_out") for name in called})
    return [f"ATen/ops/{name}.h" for name in names if (include_dir / "ATen" / "ops" / f"{name}.h").is_file()]


def lacks_something(log: str) -> bool:
    """Whether a compiler's errors may come from what the slim headers don't bring."""
    return bool(_MISSING.search(log))
