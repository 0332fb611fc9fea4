"""What sources begin with, to be compiled once and read by each build in that form.

A compiler takes most of its time to read torch's headers. With a precompiled one it takes half of it or less, but that
form takes longer to make, so it is made when several builds have been asked for. GCC finds `NAME.gch` before `NAME` on
the include path, and uses it only if the options fit; else, and as long as there is none, it reads the header here.
Where options matter that GCC doesn't look at (`fits_prefix`), a build has no such header. So what comes out is the
same, and no key depends on it.

For nvcc only the last of its steps can be helped so, see `host_compiler.sh`. The linker is helped in its own way, see
`stand_ins.sh`.
"""

from __future__ import annotations

from pathlib import Path

PREFIX_DIR = Path(__file__).resolve().parent
KERNEL, BINDING = "inlinebench_kernel.h", "inlinebench_binding.h"
HOST_COMPILER = "host_compiler.sh"
STAND_INS = "stand_ins"
WORTH_IT = 4
"""Builds from which on making both pays."""
FOLDER = "prefix-"
DIGITS = 16
