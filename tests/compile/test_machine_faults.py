"""Which output of compilers shows a fault of the machine."""

from __future__ import annotations

import pytest

from inlinebench.compile.machine_faults import machine_fault


@pytest.mark.parametrize(("log", "said"), [
    ("main.cpp: In function f\nc++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
     "the compiler (cc1plus) was killed"),
    ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "the compiler (cicc) was killed"),
    ("/usr/bin/ld: final link failed: No space left on device", "no space is left"),
    ("main.o: error writing to main.o: Disk quota exceeded\n", "no space is left"),
    ("/tmp/ccx.s: Fatal error: can't create main.o: Read-only file system", "the disk of the cache fails (Read-only"),
    ("/usr/bin/ld: main.so: final close failed: Input/output error", "the disk of the cache fails (Input/output"),
    ("c++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\ncompilation terminated.",
     "the machine has no memory or processes left"),
    ("virtual memory exhausted: Cannot allocate memory", "the machine has no memory"),
    ("ninja: fatal: pipe: Too many open files", "the machine has no memory or processes left"),
])
def test_a_fault_is_found(log: str, said: str) -> None:
    assert machine_fault(log).startswith(said)


@pytest.mark.parametrize("log", [
    "", "main.cpp:1:2: error: #error Killed signal terminated program cc1plus",
    "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)",
    "main.cpp:3:5: error: Read-only file systems are not supported", "main.cpp:3: error: 'EIO' is Input/output error",
    "main.cpp:1:10: fatal error: secret.h: Permission denied",
    'main.cpp:3:5: error: expected ; before "No space left on device" and more',
])
def test_other_errors_are_the_sources(log: str) -> None:
    assert machine_fault(log) == ""
