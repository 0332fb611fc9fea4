"""What foreign code may touch, as one record, and the step into it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from inlinebench.sandbox import landlock, privileges, seccomp

FILE_BYTES = 8 << 30
"""The largest file that foreign code may write."""
SHARED_MEMORY_BYTES = 4 << 30
"""The size of its own /dev/shm."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/proc", "/sys")
_SETTINGS = (
    "alternatives", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload",
    "localtime", "machine-id", "nsswitch.conf", "nvidia", "nvidia-container-runtime", "OpenCL", "os-release", "passwd",
    "resolv.conf", "ssl/openssl.cnf", "timezone",
)
"""Below /etc: what the dynamic loader, the C library and CUDA read."""
_OWN_PROCESS = "/proc/self"
"""CUDA doesn't start if it can't name its threads there."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm")
_PATH_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "CUDA_PATH", "CPATH", "LIBRARY_PATH")
_KEPT_VARIABLES = frozenset({
    *_PATH_VARIABLES, "LANG", "LANGUAGE", "TERM", "TZ", "CC", "CXX", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
    "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "VIRTUAL_ENV",
})
_DROPPED_VARIABLES = frozenset({"TORCH_CUDA_ARCH_LIST"})
"""The harness builds for the GPU that is there, or for `--arch`; a solution may still set it for its own builds."""
_KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "PYTORCH_", "TORCH_", "TRITON_", "CUBLAS_",
                  "CUDNN_", "LC_")


class Protection(str, Enum):
    """One thing that the sandbox does. What a machine doesn't offer is not on there."""

    FILES = "files"
    """Only its scratch folder can be written; the user's home and other data can't be read. Landlock."""
    NAMESPACES = "namespaces"
    """A network without interfaces, and a /dev/shm of its own that ends with it."""
    NETWORK = "network"
    """No connections. The network namespace, or the filter of system calls."""
    PROCESSES = "processes"
    """No signals to processes outside, no look into their memory. Landlock, or the filter of system calls."""
    SYSTEM_CALLS = "system calls"
    """What no solution needs is refused: mounts, namespaces, tracing, kernel modules. Seccomp."""
    PRIVILEGES = "privileges"
    """None of root's capabilities, and no way to regain any."""

    def __str__(self) -> str:
        return self.value


REQUIRED = tuple(protection for protection in Protection if protection is not Protection.NAMESPACES)
"""What `--require-sandbox` asks for; the others also keep off the network."""


@dataclass(frozen=True)
class Sandbox:
    """What the sandboxes of a run share: the protections that are on, by name, and what is read beside the system."""

    protections: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def policy(self, scratch: Path, readable: Iterable[Path], protected: Iterable[int], gpus: bool) -> Policy:
        """For a process that writes to `scratch` alone, and reads these files or folders as well."""
        shared = (*self.readable, *(str(path) for path in readable))
        writable = (str(scratch), *devices(gpus), _OWN_PROCESS)
        return Policy((*readable_paths(), *shared), writable, tuple(protected), self.protections)


@dataclass(frozen=True)
class Policy:
    """What a process may still do. `protected` are processes that it must not send signals to; `protections` are
    those to switch on, and switching on must work."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    protected: tuple[int, ...]
    protections: tuple[str, ...]
    file_bytes: int = FILE_BYTES

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Policy:
        return cls(tuple(data["readable"]), tuple(data["writable"]), tuple(data["protected"]),
                   tuple(data["protections"]), data["file_bytes"])


def enter(policy: Policy) -> None:
    """Gives up, for good, what the policy doesn't leave to this process. Only while it has one thread.

    The order matters: namespaces need capabilities, and the filter forbids the others' system calls. Raises OSError if
    a protection that the policy names can't be switched on.
    """
    privileges.limit(policy.file_bytes)
    wanted = {Protection(name) for name in policy.protections}
    if Protection.NAMESPACES in wanted:
        privileges.leave_namespaces(SHARED_MEMORY_BYTES)
    if wanted:
        privileges.gain_nothing()
    if Protection.PRIVILEGES in wanted:
        privileges.drop_capabilities()
    if Protection.FILES in wanted:
        landlock.restrict(map(Path, policy.readable), map(Path, policy.writable))
    if Protection.SYSTEM_CALLS in wanted:
        seccomp.install(policy.protected)


@cache
def readable_paths() -> tuple[str, ...]:
    """What every process of foreign code reads: the system, Python, the CUDA toolkit.

    Paths that come from the environment count only where they don't open the whole home or temporary folder.
    """
    found = [Path(name) for name in _SYSTEM] + [Path("/etc") / name for name in _SETTINGS]
    found += [Path(name) for name in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    named = [*sys.path, *(part for name in _PATH_VARIABLES for part in os.environ.get(name, "").split(os.pathsep))]
    found += [path for path in map(Path, filter(None, named)) if path.is_absolute() and is_narrow(path)]
    # Links are followed: what Landlock grants is the place itself.
    return tuple(dict.fromkeys(str(path.resolve()) for path in found))


def readable_for(solution: Path) -> list[Path]:
    """What a solution file may read because of where it lies: itself and its neighbours, links and their targets."""
    places = [solution, solution.resolve()]
    return [*places, *(place.parent for place in places if is_narrow(place.parent))]


def is_narrow(path: Path) -> bool:
    """Whether a folder is something of its own: not the home, the temporary folder, or above one of them."""
    path = path.resolve()
    broad = [Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), *map(Path, ("/home", "/tmp", "/var/tmp"))]
    return not any(place == path or path in place.parents for place in broad)


def devices(gpus: bool) -> tuple[str, ...]:
    """The devices that foreign code opens: harmless ones, shared memory, and the GPUs where it is to see them."""
    cards = [*Path("/dev").glob("nvidia*"), Path("/dev/dri"), Path("/dev/infiniband")] if gpus else []
    return tuple(str(path) for path in [*(Path("/dev") / name for name in _DEVICES), *cards])


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that builds and CUDA read; everything else, tokens and keys among it, stays out."""
    return {name: value for name, value in environment.items()
            if name in _KEPT_VARIABLES or (name.startswith(_KEPT_PREFIXES) and name not in _DROPPED_VARIABLES)}
