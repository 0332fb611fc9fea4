"""Tests which protections a machine offers: a child process enters a sandbox and tries to break each protection."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, Protection, devices, enter, readable_paths

MECHANISMS = (Protection.NAMESPACES, Protection.PID_NAMESPACE, Protection.PRIVILEGES, Protection.FILES,
              Protection.SYSTEM_CALLS)
"""The protections that are switched on directly; the others follow from them."""


def available() -> tuple[Protection, ...]:
    """Returns the protections that work here together. Takes about 50 ms. Forks."""
    working = _try(list(MECHANISMS))
    if working is None:
        working = _try([mechanism for mechanism in MECHANISMS if _try([mechanism]) is not None]) or set()
    return tuple(protection for protection in Protection if protection in working)


def _try(mechanisms: list[Protection]) -> set[Protection] | None:
    """Returns the protections that worked in a child with these mechanisms, or None if it could not enter the sandbox.
    """
    with tempfile.TemporaryDirectory() as folder:
        readable, writable = Path(folder) / "readable", Path(folder) / "writable"
        readable.write_text("")
        writable.mkdir()
        receive, send = os.pipe()
        tester, child = os.getpid(), os.fork()
        if child == 0:
            _test_below(tester, send, mechanisms, readable, writable)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            reply = pipe.read()
        os.waitpid(child, 0)
    return {Protection(name) for name in json.loads(reply)} if reply else None


def _test_below(tester: int, send: int, mechanisms: list[Protection], readable: Path, writable: Path) -> None:
    """Tests the mechanisms in a process below this one, which ends."""
    wanted = tuple(map(str, mechanisms))
    policy = Policy(readable_paths(), (str(writable), *devices()), (tester,), wanted)
    outside = _Outside(tester, readable)

    def program(inside: Policy) -> int:
        try:
            enter(inside)
            working = [name for name, works in _WORKS.items() if (name in mechanisms or name not in MECHANISMS)
                       and works(outside)]
            os.write(send, json.dumps(working).encode())
        except (OSError, AttributeError):  # AttributeError: the C library lacks one of the calls
            return 2
        return 0

    try:
        supervisor.run(policy, program)
    except OSError:
        pass  # no reply: the namespaces cannot be entered
    finally:
        os._exit(0)


@dataclass(frozen=True)
class _Outside:
    """What a program inside must have no access to."""

    process: int
    """A process id."""
    file: Path
    """A file."""


def _namespaces_work(outside: _Outside) -> bool:
    return len(list(Path("/sys/class/net").glob("*"))) <= 1 or _network_works(outside)


def _own_ids_work(outside: _Outside) -> bool:
    return os.getppid() == 1 and not Path(f"/proc/{outside.process}").exists()


def _files_work(outside: _Outside) -> bool:
    return _refused(lambda: outside.file.open("a").close()) and _refused(lambda: outside.file.open("r").close())


def _network_works(_: _Outside) -> bool:
    return _refused(lambda: socket.create_connection(("127.0.0.1", 9), timeout=1).close(), ConnectionRefusedError)


def _processes_work(outside: _Outside) -> bool:
    return _cannot_reach(outside.process) and _cannot_reach(os.getppid())


def _cannot_reach(pid: int) -> bool:
    return _refused(lambda: os.kill(pid, signal.SIGCONT)) and _refused(
        lambda: Path(f"/proc/{pid}/environ").open("rb").close()
    )


def _privileges_work(_: _Outside) -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    return int(facts["CapEff"], 16) == 0 and facts["NoNewPrivs"] == "1"


def _system_calls_work(_: _Outside) -> bool:
    # The filter refuses even this socket, which a network namespace alone allows, and the limits of another process.
    return _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()) and _refused(
        lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE)
    )


_WORKS: dict[Protection, Callable[[_Outside], bool]] = {
    Protection.FILES: _files_work,
    Protection.NAMESPACES: _namespaces_work,
    Protection.PID_NAMESPACE: _own_ids_work,
    Protection.NETWORK: _network_works,
    Protection.PROCESSES: _processes_work,
    Protection.PRIVILEGES: _privileges_work,
    Protection.SYSTEM_CALLS: _system_calls_work,
}


def _refused(act: Callable[[], object], *not_enough: type[OSError]) -> bool:
    """Whether an act raises OSError. Errors in `not_enough` do not count, because it may raise them without a sandbox.
    """
    try:
        act()
    except not_enough:
        return False
    except OSError:
        return True
    return False
