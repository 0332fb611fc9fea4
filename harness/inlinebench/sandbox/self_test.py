"""Finds out which protections a machine offers, by trying each in a process that then tries to break it."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from inlinebench.sandbox.policy import Policy, Protection, devices, enter, readable_paths

MECHANISMS = (Protection.NAMESPACES, Protection.PRIVILEGES, Protection.FILES, Protection.SYSTEM_CALLS)
"""The protections that are switched on; the others follow from them."""


def available() -> tuple[Protection, ...]:
    """The protections that can be switched on here together and then hold. Takes some 50 ms; forks."""
    held = _try(list(MECHANISMS))
    if held is None:
        held = _try([mechanism for mechanism in MECHANISMS if _try([mechanism]) is not None]) or set()
    return tuple(protection for protection in Protection if protection in held)


def _try(mechanisms: list[Protection]) -> set[Protection] | None:
    """What held in a child that switched the mechanisms on; None if it couldn't."""
    with tempfile.TemporaryDirectory() as folder:
        readable, writable = Path(folder) / "readable", Path(folder) / "writable"
        readable.write_text("")
        writable.mkdir()
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            _become_prisoner(send, mechanisms, readable, writable)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
    return {Protection(name) for name in json.loads(said)} if said else None


def _become_prisoner(send: int, mechanisms: list[Protection], readable: Path, writable: Path) -> None:
    status = 1
    try:
        wanted = tuple(map(str, mechanisms))
        enter(Policy(readable_paths(), (str(writable), *devices(gpus=False)), (os.getppid(),), wanted))
        held = [name for name, holds in _HOLDS.items() if (name in mechanisms or name not in MECHANISMS)
                and holds(readable)]
        os.write(send, json.dumps(held).encode())
        status = 0
    except (OSError, AttributeError):  # a C library without one of the calls is as good as a kernel without it
        status = 2
    finally:
        os._exit(status)


def _namespaces_hold(_: Path) -> bool:
    return len(list(Path("/sys/class/net").glob("*"))) <= 1 or _network_holds(_)


def _files_hold(outside: Path) -> bool:
    return _refused(lambda: outside.open("a").close()) and _refused(lambda: outside.open("r").close())


def _network_holds(_: Path) -> bool:
    return _refused(lambda: socket.create_connection(("127.0.0.1", 9), timeout=1).close(), ConnectionRefusedError)


def _processes_hold(_: Path) -> bool:
    parent = os.getppid()
    return _refused(lambda: os.kill(parent, signal.SIGCONT)) and _refused(
        lambda: Path(f"/proc/{parent}/environ").open("rb").close()
    )


def _privileges_hold(_: Path) -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    return int(facts["CapEff"], 16) == 0 and facts["NoNewPrivs"] == "1"


def _system_calls_hold(_: Path) -> bool:
    # The filter refuses this socket itself, which a network namespace alone would not.
    return _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())


_HOLDS: dict[Protection, Callable[[Path], bool]] = {
    Protection.FILES: _files_hold,
    Protection.NAMESPACES: _namespaces_hold,
    Protection.NETWORK: _network_holds,
    Protection.PROCESSES: _processes_hold,
    Protection.PRIVILEGES: _privileges_hold,
    Protection.SYSTEM_CALLS: _system_calls_hold,
}


def _refused(act: Callable[[], object], *not_enough: type[OSError]) -> bool:
    """Whether an act raises; errors that it might have raised without a sandbox as well don't count."""
    try:
        act()
    except not_enough:
        return False
    except OSError:
        return True
    return False
