"""System calls that fail for a reason of the machine: a full disk, too many open files, no memory.

Each call that builds, the cache and files of results make in the scheduler's process fails once, and each kind of call
from some point on. No fault is blamed on a solution or is a traceback, no result is lost, and the next run works.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict
from inlinebench.results.result_json import from_json

from ..running import ROOT
from .injection import Ended, Fault, library, python, run

pytestmark = pytest.mark.slow

ERRORS = {
    "open": (errno.EMFILE, errno.EACCES, errno.EIO, errno.ENOSPC, errno.EROFS, errno.EINTR),
    "read": (errno.EIO, errno.ENOMEM), "write": (errno.ENOSPC, errno.EIO, errno.EINTR),
    "mkdir": (errno.ENOSPC, errno.EROFS, errno.EACCES), "rename": (errno.ENOSPC, errno.EIO, errno.EACCES),
    "unlink": (errno.EIO, errno.EACCES), "rmdir": (errno.EIO,), "chmod": (errno.EACCES,), "pipe": (errno.EMFILE,),
    "fork": (errno.EAGAIN, errno.ENOMEM), "mmap": (errno.ENOMEM,), "flock": (errno.ENOLCK,), "fsync": (errno.EIO,),
    "link": (errno.EMLINK,),
}
"""The errors of each call, which take turns."""
LASTING = [Fault("open", -4, errno.EMFILE), Fault("write", -1, errno.ENOSPC), Fault("mkdir", -2, errno.EROFS),
           Fault("rename", -1, errno.EIO), Fault("fork", -1, errno.EAGAIN), Fault("pipe", -1, errno.EMFILE),
           Fault("read", -3, errno.EIO)]


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("preload"))


def faults_of(calls: Ended) -> Iterator[Fault]:
    """Yields a fault for each call that a command made."""
    for call, times in sorted(calls.calls.items()):
        for number in range(1, times + 1):
            yield Fault(call, number, ERRORS[call][number % len(ERRORS[call])])


def assert_blameless(found: Ended, fault: Fault) -> None:
    """Asserts that a build has worked nevertheless, that it is an internal error, or that one line says what to do."""
    assert found.failed and "Traceback" not in found.text, f"{fault}: {found.text}"
    assert found.status in (0, 1, 2), f"{fault}: {found.text}"
    assert found.status != 1 or found.out.startswith(Verdict.INTERNAL_ERROR), f"{fault}: {found.text}"
    assert found.status != 2 or (len(found.err.splitlines()) == 1 and "; " in found.err), f"{fault}: {found.err}"


@pytest.mark.parametrize("warm", [False, True])
def test_each_call_of_a_build_may_fail_once(preload: Path, tmp_path: Path, warm: bool) -> None:
    kept, folder, log = tmp_path / "kept", tmp_path / "cache", tmp_path / "log"
    plain = run(python("builds", kept), kept, None, preload=preload, log=log)
    if warm:
        plain = run(python("builds", kept), kept, None, preload=preload, log=log)
    assert plain.status == 0 and sum(plain.calls.values()) > 20, plain
    ends = list[int]()
    for fault in faults_of(plain):
        shutil.rmtree(folder, ignore_errors=True)
        if warm:
            shutil.copytree(kept, folder)
        found = run(python("builds", folder), folder, fault, preload=preload, log=log)
        assert_blameless(found, fault)
        ends.append(found.status)
        if found.status:
            again = run(python("builds", folder), folder, None, preload=preload, log=log)
            assert again.status == 0, f"after {fault}: {again.text}"
    assert ends.count(0) > len(ends) * 0.9  # a fault that does not last is repaired


@pytest.mark.parametrize("fault", LASTING, ids=str)
def test_a_lasting_fault_of_a_build_is_an_internal_error_and_leaves_nothing(
    preload: Path, tmp_path: Path, fault: Fault
) -> None:
    folder, log = tmp_path / "cache", tmp_path / "log"
    found = run(python("builds", folder), folder, fault, preload=preload, log=log)
    assert_blameless(found, fault)
    assert found.status
    again = run(python("builds", folder), folder, None, preload=preload, log=log)
    assert again.status == 0, again.text


def test_no_result_is_lost_when_a_call_fails_that_writes_results(preload: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "out.jsonl", tmp_path / "log"
    plain = run(python("journal", out, "4"), out, None, preload=preload, log=log)
    complete = plain.out.splitlines()[-1]
    assert complete == "complete: ['p0', 'p1', 'p2', 'p3']"
    begin = out.read_text().splitlines(keepends=True)
    faults = [*faults_of(plain), *(Fault("write", -number, errno.ENOSPC) for number in (1, 2, 3))]
    assert len(faults) > 8
    for fault in faults:
        out.write_text(begin[0] + begin[1][:40])  # an interrupted run wrote this
        found = run(python("journal", out, "4"), out, fault, preload=preload, log=log)
        assert found.status in (0, 2) and "Traceback" not in found.text, f"{fault}: {found.text}"
        kept = {from_json(line).problem for line in out.read_text().splitlines() if line.endswith("}")}
        told = {line.removeprefix("written ") for line in found.out.splitlines() if line.startswith("written ")}
        assert kept >= {"p0"} | told, fault
        again = run(python("journal", out, "4"), out, None, preload=preload, log=log)
        assert again.status == 0 and again.out.splitlines()[-1] == complete, f"after {fault}: {again.text}"


WHOLE = [Fault("fork", 1, errno.EAGAIN), Fault("fork", 2, errno.ENOMEM), Fault("pipe", -4, errno.EMFILE),
         Fault("open", -8, errno.EMFILE)]


@pytest.mark.parametrize("fault", WHOLE, ids=str)
def test_a_whole_run_ends_with_a_line_an_internal_error_or_passes(
    preload: Path, tmp_path: Path, cache: Path, fault: Fault
) -> None:
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "inlinebench.cli.main", "check", "matmul_diag/naive", "--device", "cpu",
               "--shape", "small", "--min-calls", "2", "--cache", cache, "--out", out, "--problems", ROOT / "problems",
               "--solutions", ROOT / "solutions"]
    found = run(command, cache, fault, preload=preload, log=tmp_path / "log")
    assert "Traceback" not in found.text
    rows = [from_json(line) for line in out.read_text().splitlines()] if out.exists() else []
    assert {row.verdict for row in rows} <= {Verdict.PASSED, Verdict.INTERNAL_ERROR}
    assert rows or (found.status == 2 and "; " in found.err.splitlines()[-1])
