"""Real builds with ninja and the C++ compiler, of sources without torch's headers, so that each takes a second."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from inlinebench.builds.request import BuildOutcome, BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.service import LOG_BYTES, BuildService, BuildSettings, _is_library
from inlinebench.devices.cpu.target import CpuTarget
from inlinebench.devices.cuda.target import GpuTarget
from inlinebench.results.result import Verdict
from inlinebench.sandbox.policy import REQUIRED, Sandbox
from inlinebench.sandbox.self_test import available

ROOT = Path(__file__).resolve().parent.parent.parent

SOURCE = 'extern "C" int answer() { return ANSWER; }'


def service_in(cache: Path) -> BuildService:
    """Returns a new service that builds for the CPU."""
    return BuildService(cache, CpuTarget(), BuildSettings(60))


def request(answer: str = "42", source: str = SOURCE, **facts: Any) -> BuildRequest:
    return BuildRequest("small", (source,), extra_cflags=(f"-DANSWER={answer}",), no_implicit_headers=True, **facts)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[BuildService]:
    service = service_in(tmp_path)
    yield service
    service.close()


@pytest.fixture
def fresh_tools() -> Iterator[None]:
    """Makes the toolchain search for compilers again, before and after the test."""
    tools = (toolchain.cxx, toolchain.ninja, toolchain.version_of)
    for tool in tools:
        tool.cache_clear()
    yield
    for tool in tools:
        tool.cache_clear()


def assert_gone(pids: Path) -> None:
    """Asserts that the process whose PID is in the file has ended (it may be a zombie)."""
    (pid,) = pids.read_text().split()
    stat = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 2
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, f"process {pid} is still running"
        time.sleep(0.02)


def solution(folder: Path) -> tuple[str, ...]:
    """Creates a folder with a solution, and returns what it is given."""
    folder.mkdir()
    (folder / "s.py").write_text("")
    return str(folder / "s.py"), str(folder)


def answer_of(outcome: BuildOutcome) -> int:
    assert outcome.library is not None, outcome.log
    return int(ctypes.CDLL(str(outcome.library)).answer())


def test_a_second_build_comes_from_the_cache(tmp_path: Path, service: BuildService) -> None:
    outcome = service.build(request())
    assert answer_of(outcome) == 42
    assert outcome.seconds > 0 and not outcome.cached
    again = service_in(tmp_path).build(request())
    assert (again.library, again.cached, again.seconds) == (outcome.library, True, 0.0)


def test_a_build_is_made_again_when_a_given_file_changes_that_compilers_can_find(tmp_path: Path) -> None:
    """A file that is included through a macro is not in the request."""
    given, header = solution(tmp_path / "given"), tmp_path / "given" / "answer.h"
    source = f'#define NAME "answer.h"\n#include NAME\n{SOURCE}'
    for answer in (1, 2):
        header.write_text(f"#undef ANSWER\n#define ANSWER {answer}\n")
        wanted = request(source=source, extra_include_paths=given[1:], readable=given)
        first, again = (service_in(tmp_path / "cache").build(wanted) for _ in range(2))
        assert answer_of(first) == answer and (first.cached, again.cached) == (False, True)


def test_a_build_that_names_no_given_file_stays_in_the_cache_when_one_changes(tmp_path: Path) -> None:
    given = solution(tmp_path / "given")
    for cached in (False, True):
        (tmp_path / "given" / "notes.txt").write_text(str(cached))
        assert service_in(tmp_path / "cache").build(request(readable=given)).cached is cached


def test_the_locations_of_compilers_and_cache_do_not_matter(tmp_path: Path) -> None:
    """They affect neither builds nor cache hits."""
    found = []
    for name in ("plain", "it's $in; a place"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "c++").symlink_to(toolchain.cxx())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(toolchain, "cxx", lambda folder=folder: str(folder / "c++"))
            found.append(BuildService(folder / "cache", CpuTarget(), BuildSettings(60)).build(request()))
            assert answer_of(found[-1]) == 42
            shutil.copytree(folder / "cache", folder / "moved")
            assert BuildService(folder / "moved", CpuTarget(), BuildSettings(60)).build(request()).cached
    assert [outcome.cached for outcome in found] == [False, False]
    keys = {outcome.library.parent.name for outcome in found if outcome.library}
    assert len(keys) == 1


def test_a_compile_error_is_the_reason_and_the_full_log_is_kept(service: BuildService) -> None:
    outcome = service.build(request(source='extern "C" int answer() {\n  return wrong;\n}'))
    assert outcome.library is None
    assert "cpp_sources:2" in outcome.reason and "error: " in outcome.reason and "wrong" in outcome.reason
    assert "wrong" in outcome.log and "cpp_sources:2:10: error: " in outcome.log


def test_an_error_names_its_source_among_several(service: BuildService) -> None:
    outcome = service.build(BuildRequest("small", ("int f();", "wrong"), no_implicit_headers=True))
    assert "cpp_sources[1]:1" in outcome.reason


def test_a_link_error_is_the_reason(service: BuildService) -> None:
    outcome = service.build(request(extra_ldflags=("-lno_such_library",)))
    assert outcome.library is None and "no_such_library" in outcome.reason


def test_concurrent_equal_requests_are_built_once(tmp_path: Path) -> None:
    counter = tmp_path / "calls"
    wrapper = tmp_path / "counting-c++"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *--version*) ;; *) echo call >> {counter};; esac\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    service = BuildService(tmp_path / "cache", CpuTarget(), BuildSettings(60, jobs=4))
    found: list[BuildOutcome] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain, "cxx", lambda: str(wrapper))
        threads = [Thread(target=lambda: found.append(service.build(request()))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer_of(outcome) for outcome in found] == [42] * 4
    assert counter.read_text().split() == ["call", "call"], "one compilation and one link"


def test_a_build_that_exceeds_its_time_is_killed_with_its_compilers(tmp_path: Path) -> None:
    slow = tmp_path / "slow-c++"
    slow.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nsleep 86397\n")
    slow.chmod(0o755)
    service = BuildService(tmp_path / "cache", CpuTarget(), BuildSettings(0.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain, "cxx", lambda: str(slow))
        patch.setattr(toolchain, "version_of", lambda compiler: "slow")
        begin = time.monotonic()
        outcome = service.build(request())
    assert outcome.verdict is Verdict.TIMED_OUT and "--build-timeout" in outcome.reason
    assert time.monotonic() - begin < 10
    assert_gone(tmp_path / "pids")
    assert [entry for entry in os.listdir(tmp_path / "cache") if entry.startswith("building")] == []


def test_closing_kills_running_builds(tmp_path: Path) -> None:
    slow = tmp_path / "slow-c++"
    slow.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nsleep 86397\n")
    slow.chmod(0o755)
    service = service_in(tmp_path / "cache")
    found: list[BuildOutcome] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain, "cxx", lambda: str(slow))
        patch.setattr(toolchain, "version_of", lambda compiler: "slow")
        thread = Thread(target=lambda: found.append(service.build(request())))
        thread.start()
        time.sleep(0.5)
        service.close()
        thread.join(10)
    assert not thread.is_alive() and found[0].library is None
    assert_gone(tmp_path / "pids")


def test_a_closed_service_builds_nothing_and_blames_nobody(tmp_path: Path) -> None:
    service = service_in(tmp_path)
    service.close()
    assert service.build(request()).verdict is Verdict.INTERNAL_ERROR
    assert [name for name in os.listdir(tmp_path) if name.startswith("building")] == []


def test_the_compiler_stops_after_some_errors(service: BuildService) -> None:
    source = "\n".join(f"int f{number}() {{ return unknown_{number}; }}" for number in range(500))
    log = service.build(request(source=source)).log
    assert 10 < log.count("error: ") < 100


def test_a_missing_compiler_is_a_reason_with_an_instruction(
    tmp_path: Path, fresh_tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    outcome = service_in(tmp_path).build(request())
    assert outcome.library is None and outcome.reason.startswith("no C++ compiler: install g++")
    assert outcome.verdict is Verdict.INTERNAL_ERROR


def failing_compiler(folder: Path, line: str, times: int) -> Path:
    """Makes a compiler that fails so many times with a line on stderr."""
    path, count = folder / "failing-c++", folder / "count"
    path.write_text(f"#!/bin/sh\necho >> {count}\n[ $(wc -l < {count}) -gt {times} ] && exec c++ \"$@\"\n"
                    f"echo '{line}' >&2\nexit 1\n")
    path.chmod(0o755)
    return path


FAULTS = {
    "killed": ("c++: fatal error: Killed signal terminated program cc1plus", "(cc1plus) was killed"),
    "nvcc": ("nvcc error   : \'\\\'\'ptxas\'\\\'\' died due to signal 9 (Kill signal)", "(ptxas) was killed"),
    "full": ("/tmp/ccX.s: fatal error: error writing to main.o: No space left on device", "no space is left on the"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("times", "library"), [(1, True), (9, False)])
def test_a_fault_of_the_machine_is_tried_again_and_no_fault_of_the_solution(
    tmp_path: Path, fault: str, times: int, library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, said = FAULTS[fault]
    compiler = failing_compiler(tmp_path, line, times)
    monkeypatch.setattr(toolchain, "cxx", lambda: str(compiler))
    monkeypatch.setattr(toolchain, "version_of", lambda compiler: "failing")
    service = service_in(tmp_path / "cache")
    outcome = service.build(request())
    assert (outcome.library is not None) is library
    if not library:
        assert outcome.verdict is Verdict.INTERNAL_ERROR and said in outcome.reason
        (tmp_path / "count").write_text("\n" * 20)
        assert service.build(request()).library is not None, "it does not stick"
    service.close()


def test_an_error_of_the_source_that_names_a_fault_is_its_own(service: BuildService) -> None:
    outcome = service.build(request(source="#error Killed signal terminated program cc1plus"))
    assert outcome.verdict is Verdict.BUILD_FAILED


def test_a_cache_that_cannot_be_written_is_no_fault_of_the_solution(
    service: BuildService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        outcome = service.build(request())
    assert outcome.verdict is Verdict.INTERNAL_ERROR and "No space left on device" in outcome.reason
    assert service.build(request()).library is not None


def test_a_compiler_that_does_not_run_is_a_reason(
    tmp_path: Path, fresh_tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    outcome = service_in(tmp_path).build(request())
    assert outcome.library is None and "/bin/false" in outcome.reason


@pytest.mark.parametrize("broken", [
    request(answer="'"), request(answer="'a\nb'"), request(source='extern "C" int answer() { return 1; } // \ud800'),
])
def test_a_request_that_cannot_be_written_to_files_is_a_reason(service: BuildService, broken: BuildRequest) -> None:
    outcome = service.build(broken)
    assert outcome.library is None and outcome.reason


@pytest.mark.slow
def test_cuda_that_cannot_run_on_the_cpu_is_unsupported_with_its_line(service: BuildService) -> None:
    source = '__global__ void f() {\n  asm volatile("wgmma.fence.sync.aligned;");\n}\n'
    outcome = service.build(BuildRequest("small", (), (source,)))
    assert outcome.library is None and outcome.verdict is Verdict.SKIPPED
    assert outcome.at == (source, 2) and "inline PTX" in outcome.reason


@pytest.mark.slow
def test_a_malformed_launch_is_a_build_failure_and_not_unsupported(service: BuildService) -> None:
    outcome = service.build(BuildRequest("small", (), ("void f() {\n  k<<<1, 2;\n}\n",)))
    assert outcome.library is None and outcome.verdict is Verdict.BUILD_FAILED
    assert "lacks `>>>`" in outcome.reason and outcome.at is not None and outcome.at[1] == 2


@pytest.mark.slow
def test_sources_that_need_more_than_slim_headers_get_full_ones(tmp_path: Path) -> None:
    service = BuildService(tmp_path, CpuTarget(), BuildSettings(600))
    source = BuildRequest("small", ("int f() { return torch::nn::LinearOptions(2, 3).in_features(); }",))
    whole = service.build(source)
    assert whole.library is not None and whole.headers.startswith("full, because")
    again = service_in(tmp_path).build(source)
    assert (again.library, again.cached, again.headers) == (whole.library, True, "full, as in an earlier run")
    missing = service.build(BuildRequest("small", ("int f() { return no_such_name; }",), no_implicit_headers=True))
    assert missing.library is None and "no_such_name" in missing.reason


def test_the_clock_is_built_for_each_architecture(tmp_path: Path) -> None:
    """Uses the real nvcc, which needs no GPU. The library contains the names of its targets."""
    try:
        toolchain.nvcc()
    except toolchain.MissingTool as error:
        pytest.skip(str(error))
    clock = BuildService(tmp_path, GpuTarget(("90a", "80")), BuildSettings(300)).runtime_libraries().clock
    assert clock is not None
    embedded = clock.read_bytes()
    assert b"sm_80" in embedded and b"sm_90a" in embedded
    assert BuildService(tmp_path, GpuTarget(("80", "90a")), BuildSettings(300)).runtime_libraries().clock == clock


def wrapped(tools: Path, script: str) -> BuildRequest:
    """Returns a request whose flags make the compiler run a script of the solution."""
    tools.mkdir(exist_ok=True)
    (tools / "wrapper.sh").write_text(script)
    flags = ("-DANSWER=1", "-wrapper", f"/bin/sh,{tools / 'wrapper.sh'}")
    return BuildRequest("small", (SOURCE,), extra_cflags=flags, no_implicit_headers=True)


@pytest.fixture
def sandboxed_service(tmp_path: Path) -> Iterator[BuildService]:
    """A service whose compilers run in the sandbox, as in a run."""
    if not set(REQUIRED) <= set(available()):
        pytest.skip("this machine does not offer the whole sandbox")
    sandbox = Sandbox(tuple(map(str, available())), (str(ROOT), str(tmp_path / "tools")))
    service = BuildService(tmp_path / "cache", CpuTarget(), BuildSettings(60, sandbox=sandbox))
    yield service
    service.close()


def test_a_build_works_inside_the_sandbox(sandboxed_service: BuildService) -> None:
    assert answer_of(sandboxed_service.build(request())) == 42


def test_a_source_can_include_what_its_solution_is_given(sandboxed_service: BuildService, tmp_path: Path) -> None:
    (tmp_path / "given.h").write_text("")
    including = request(source=f'#include "{tmp_path / "given.h"}"\n{SOURCE}')
    assert sandboxed_service.build(including).library is None
    given = request(source=including.cpp_sources[0], readable=(str(tmp_path / "given.h"),))
    assert answer_of(sandboxed_service.build(given)) == 42


def test_a_source_cannot_include_a_secret(
    sandboxed_service: BuildService, service: BuildService, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text('#error "token-4711"\n')
    including = request(source=f'#include "{secret}"\n{SOURCE}')
    assert "token-4711" in service.build(including).log
    outcome = sandboxed_service.build(including)
    assert outcome.library is None
    assert "token-4711" not in outcome.log and str(secret) in outcome.log


def test_a_program_started_by_flags_cannot_write_outside(
    sandboxed_service: BuildService, service: BuildService, tmp_path: Path
) -> None:
    target = tmp_path / "planted"
    request = wrapped(tmp_path / "tools", f'touch {target}; exec "$@"\n')
    sandboxed_service.build(request)
    assert not target.exists()
    service.build(request)
    assert target.exists()


def test_a_build_that_starts_too_many_processes_is_stopped(sandboxed_service: BuildService, tmp_path: Path) -> None:
    script = 'i=0; while [ $i -lt 400 ]; do sleep 20 & i=$((i+1)); done; wait; exec "$@"\n'
    outcome = sandboxed_service.build(wrapped(tmp_path / "tools", script))
    assert outcome.library is None and "more than 256 processes" in outcome.reason


LEAVES = """
setsid sleep {seconds} < /dev/null > /dev/null 2>&1 &
(trap '' TERM HUP; exec sleep {seconds}) < /dev/null > /dev/null 2>&1 &
exec "$@"
"""
"""A wrapper around the compiler that leaves two processes behind, one of them in another session."""


def running(argument: str) -> list[int]:
    """Returns the processes that were started with this argument."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if argument.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@pytest.mark.parametrize("sandboxed", [True, False])
def test_processes_left_by_a_build_are_killed_before_its_library_is_used(
    sandboxed: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    builder = request.getfixturevalue("sandboxed_service" if sandboxed else "service")
    seconds = f"86390.{os.getpid()}{int(sandboxed)}"
    outcome = builder.build(wrapped(tmp_path / "tools", LEAVES.format(seconds=seconds)))
    assert outcome.library is not None, outcome.log
    assert running(seconds) == []


HIDES = """
#include <signal.h>
#include <time.h>
#include <unistd.h>
int main() {{
  if (fork()) return 0;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, 0);
  setsid();
  if (fork()) return 0;
  for (int descriptor = 0; descriptor < 3; ++descriptor) close(descriptor);
  for (time_t end = time(0) + 20; time(0) < end;) {{ {meanwhile}; }}
}}
"""
"""A program that leaves an orphan in another session, which blocks signals."""
MEANWHILE = {
    "waits": "sleep(1)", "moves to a new process each time": "if (fork()) _exit(0)",
    "multiplies": "fork(); usleep(100000)",
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("sandboxed", [True, False])
def test_an_orphan_of_a_build_is_killed_whatever_it_does(
    sandboxed: bool, meanwhile: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not sandboxed and meanwhile != "waits":
        pytest.skip("without the filter, a process can move faster than it is found")
    builder = request.getfixturevalue("sandboxed_service" if sandboxed else "service")
    argument, tools = f"hides-{os.getpid()}", tmp_path / "tools"
    tools.mkdir()
    (tools / "hides.c").write_text(HIDES.format(meanwhile=MEANWHILE[meanwhile]))
    subprocess.run(["cc", str(tools / "hides.c"), "-o", str(tools / "hides")], check=True)
    outcome = builder.build(wrapped(tools, f'{tools / "hides"} {argument} & sleep 0.2; exec "$@"\n'))
    assert outcome.library is not None or "more than 256 processes" in outcome.reason, outcome.log
    assert running(argument) == []


SIGNALS_ITS_GROUP = """
trap '' TERM
(sleep {seconds} < /dev/null > /dev/null 2>&1 &)
(setsid sleep {seconds} < /dev/null > /dev/null 2>&1 &)
kill -{signal} 0
exec "$@"
"""


@pytest.mark.parametrize("number", ["TERM", "KILL"])
def test_a_build_that_signals_its_process_group_leaves_no_processes(
    service: BuildService, tmp_path: Path, number: str
) -> None:
    seconds = f"86380.{os.getpid()}"
    service.build(wrapped(tmp_path / "tools", SIGNALS_ITS_GROUP.format(seconds=seconds, signal=number)))
    assert running(seconds) == []


@pytest.mark.slow
def test_only_the_start_of_endless_compiler_output_is_kept(service: BuildService, tmp_path: Path) -> None:
    script = 'echo "cpp_sources:1:1: error: planted" >&2; yes | head -c 20000000 >&2; exit 1\n'
    outcome = service.build(wrapped(tmp_path / "tools", script))
    assert outcome.library is None and outcome.reason.startswith("cpp_sources:1:1: error: planted")
    assert len(outcome.log) <= LOG_BYTES


def test_only_a_regular_file_is_accepted_as_a_library(tmp_path: Path) -> None:
    plain, pipe, link = tmp_path / "plain", tmp_path / "pipe", tmp_path / "link"
    plain.write_bytes(b"library")
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    assert _is_library(plain)
    assert not any(map(_is_library, (pipe, link, tmp_path / "missing")))


@pytest.mark.slow
def test_a_source_with_an_error_of_the_author_is_compiled_once(service: BuildService) -> None:
    """With torch's headers. `headers` would say so if there had been a second attempt with the full ones."""
    outcome = service.build(BuildRequest("small", ("int f() { return no_such_name; }",)))
    assert outcome.library is None and outcome.headers == "slim"


@pytest.mark.slow
def test_sources_can_use_torchs_version(service: BuildService) -> None:
    source = "#if TORCH_VERSION_MAJOR < 2\n#error unknown\n#endif"
    outcome = service.build(BuildRequest("small", (source,)))
    assert outcome.headers == "slim" and outcome.library is not None, outcome.log
