from __future__ import annotations

import pytest

from inlinebench.process.sanitizer import NoReport, describe

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at scale(const float *, float *, int)+0x130
=========     by thread (131,0,0) in block (0,0,0)
=========     Access at 0x7f2d4fa0020c is out of bounds
=========
========= ERROR SUMMARY: 125 errors
"""
CLEAN = """========= COMPUTE-SANITIZER
done
========= ERROR SUMMARY: 0 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(float *)+0x90
=========     and Read access at sum(float *)+0x150 [16 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_a_finding_is_one_line_with_its_location() -> None:
    assert describe("memcheck", MEMCHECK) == (
        "memcheck: 125 errors, first: Invalid __global__ write of size 4 bytes; "
        "at scale(const float *, float *, int)+0x130; by thread (131,0,0) in block (0,0,0)"
    )
    assert describe("racecheck", RACE).startswith("racecheck: 1 error, first: Error: Race reported between Write")


def test_a_clean_report_has_no_finding() -> None:
    assert describe("memcheck", CLEAN) == ""
    only_warnings = "========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)"
    assert describe("racecheck", only_warnings) == ""


def test_an_incomplete_report_is_not_a_clean_one() -> None:
    with pytest.raises(NoReport, match="no summary"):
        describe("memcheck", "========= COMPUTE-SANITIZER\n")
