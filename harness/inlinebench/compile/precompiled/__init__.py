"""Precompiled headers: what every source begins with, compiled once and read by each build in that form.

A compiler spends most of its time on torch's headers. A precompiled header halves that or better, but takes longer to
make than a build takes, so it is made when several builds have been asked for. GCC finds `NAME.gch` before `NAME` on
the include path and uses it only if the options fit; otherwise it reads the header itself. Builds whose options matter
to headers without GCC checking them (`fits_prefix`) do not use one. The library is the same either way, so no cache key
depends on it.

Of nvcc's steps only the last one, its host compiler, can use one: see `host_compiler.sh`.
"""

from __future__ import annotations

from pathlib import Path

PRECOMPILED_DIR = Path(__file__).resolve().parent
KERNEL, BINDING = "inlinebench_kernel.h", "inlinebench_binding.h"
HOST_COMPILER = "host_compiler.sh"
WORTH_IT = 4
"""Builds from which on making both pays."""
FOLDER = "prefix-"
DIGITS = 16
