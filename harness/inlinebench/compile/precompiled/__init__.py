"""Precompiled headers: the start of every source, compiled once and reused by each build.

A compiler spends most of its time on torch's headers. A precompiled header at least halves this time, but takes longer
to make than one build, so it is made after several builds. GCC finds `NAME.gch` before `NAME` on the include path. It
uses it only if the options match, and otherwise reads the header itself. Options that matter to headers but that GCC
does not check rule precompiled headers out (`fits_precompiled`). The library is the same either way, so cache keys do
not depend on precompiled headers.

Of nvcc's steps only the last, its host compiler, can use one: see `host_compiler.sh`.
"""

from __future__ import annotations

from pathlib import Path

PRECOMPILED_DIR = Path(__file__).resolve().parent
KERNEL, BINDING = "inlinebench_kernel.h", "inlinebench_binding.h"
HOST_COMPILER = "host_compiler.sh"
WORTH_IT = 4
"""Number of builds after which making precompiled headers is worthwhile."""
FOLDER = "prefix-"
DIGITS = 16
