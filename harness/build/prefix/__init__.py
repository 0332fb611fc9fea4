"""What every source for the CPU begins with, to be compiled once and read by each build in that form.

A compiler takes most of its time to read torch's headers. With a precompiled one it takes half of it, but that form
takes more than twice as long to make, so it is made when several builds have been asked for. GCC finds `NAME.gch`
before `NAME` on the include path, and uses it only if the options fit; else, and as long as there is none, it reads the
header here. So what comes out is the same, and no key depends on it.
"""

from __future__ import annotations

from pathlib import Path

PREFIX_DIR = Path(__file__).resolve().parent
KERNEL, BINDING = "inlinebench_kernel.h", "inlinebench_binding.h"
WORTH_IT = 4
"""Builds from which on making both pays."""
FOLDER = "prefix-"
DIGITS = 16
