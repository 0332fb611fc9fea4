"""The policy of a sandbox: what foreign code may access. `enter` applies it to the current process."""

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
from inlinebench.sandbox.gpu import Gpu

FILE_BYTES = 8 << 30
"""The largest file that foreign code may write."""
SHARED_MEMORY_BYTES = 4 << 30
"""The size of the sandbox's own /dev/shm."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/proc", "/sys")
_SETTINGS = (
    "alternatives", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload",
    "localtime", "machine-id", "nsswitch.conf", "nvidia", "nvidia-container-runtime", "OpenCL", "os-release", "passwd",
    "resolv.conf", "ssl/openssl.cnf", "timezone",
)
"""Files below /etc that the dynamic loader, the C library and CUDA read."""
_OWN_PROCESS = "/proc/self"
"""Writable, because CUDA does not start if it cannot name its threads there."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm")
_PATH_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "CUDA_PATH", "CPATH", "LIBRARY_PATH")
_KEPT_VARIABLES = frozenset({
    *_PATH_VARIABLES, "LANG", "LANGUAGE", "TERM", "TZ", "CC", "CXX", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
    "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "VIRTUAL_ENV",
})
_DROPPED_VARIABLES = frozenset({"TORCH_CUDA_ARCH_LIST"})
"""The harness builds for the GPU of this machine, or for `--arch`. A solution may still set it for its own builds."""
_KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "PYTORCH_", "TORCH_", "TRITON_", "CUBLAS_",
                  "CUDNN_", "LC_")


class Protection(str, Enum):
    """A protection of the sandbox. Protections that a machine does not offer are left out there."""

    FILES = "files"
    """Only the scratch folder is writable; the user's home and other data are not readable. By Landlock."""
    NAMESPACES = "namespaces"
    """A network without interfaces, and a private /dev/shm that is deleted at the end."""
    PID_NAMESPACE = "PID namespace"
    """Processes outside are not visible, and all inside end together."""
    NETWORK = "network"
    """No connections. By the network namespace or the system call filter."""
    PROCESSES = "processes"
    """No signals to processes outside, no access to their memory, no change to their limits, priority or affinity. By
    Landlock and the system call filter."""
    SYSTEM_CALLS = "system calls"
    """System calls that no solution needs are refused: mounts, namespaces, tracing, kernel modules, and queues that
    outlive a process. By seccomp."""
    PRIVILEGES = "privileges"
    """None of root's capabilities, and no way to regain them."""

    def __str__(self) -> str:
        return self.value


REQUIRED = tuple(
    protection for protection in Protection if protection not in (Protection.NAMESPACES, Protection.PID_NAMESPACE))
"""The protections that `--require-sandbox` requires. Namespaces are not among them: without them the network is closed,
and processes are found by their parents."""


@dataclass(frozen=True)
class Sandbox:
    """The settings that all sandboxes of a run share."""

    protections: tuple[str, ...] = ()
    """Names of the protections to switch on."""
    readable: tuple[str, ...] = ()
    """Paths that are readable in addition to the system's."""

    def policy(
        self, scratch: Path, readable: Iterable[Path], protected: Iterable[int], gpu: Gpu | None = None
    ) -> Policy:
        """Returns the policy for a process that writes only to `scratch`, and can also read the paths in `readable`.

        It must not send signals to `protected` processes, and may use the GPU, if one is given.
        """
        shared = (*self.readable, *(str(path) for path in readable))
        writable = (str(scratch), *devices(gpu), _OWN_PROCESS)
        return Policy((*readable_paths(), *shared), writable, tuple(protected), self.protections)


@dataclass(frozen=True)
class Policy:
    """What a process inside the sandbox may access."""

    readable: tuple[str, ...]
    """Files and folders that it may read and execute."""
    writable: tuple[str, ...]
    """Files and folders that it may also write."""
    protected: tuple[int, ...]
    """PIDs that it must not send signals to."""
    protections: tuple[str, ...]
    """Names of the protections to switch on. `enter` fails if one cannot be switched on."""
    file_bytes: int = FILE_BYTES
    """Size of the largest file that it may write."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Policy:
        return cls(tuple(data["readable"]), tuple(data["writable"]), tuple(data["protected"]),
                   tuple(data["protections"]), data["file_bytes"])


def enter(policy: Policy) -> None:
    """Permanently restricts this process to the policy. It must have a single thread.

    Namespaces are not entered here: see `inlinebench.sandbox.supervisor`. The order matters, because the filter forbids
    the others' system calls. Raises OSError if a protection of the policy cannot be switched on.
    """
    privileges.limit(policy.file_bytes)
    wanted = {Protection(name) for name in policy.protections}
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
    """Returns the paths that all foreign code may read: the system, Python, the CUDA toolkit.

    Paths from the environment are left out if they would open the whole home or temporary folder.
    """
    found = [Path(name) for name in _SYSTEM] + [Path("/etc") / name for name in _SETTINGS]
    found += [Path(name) for name in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    named = [*sys.path, *(part for name in _PATH_VARIABLES for part in os.environ.get(name, "").split(os.pathsep))]
    found += [path for path in map(Path, filter(None, named)) if path.is_absolute() and is_narrow(path)]
    # Landlock grants rights to the target of a link, so links are resolved.
    return tuple(dict.fromkeys(str(path.resolve()) for path in found))


def is_narrow(path: Path) -> bool:
    """Whether a folder is neither the home nor a temporary folder, nor a parent of one of them."""
    path = path.resolve()
    broad = [Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), *map(Path, ("/home", "/tmp", "/var/tmp"))]
    return not any(folder == path or path in folder.parents for folder in broad)


def devices(gpu: Gpu | None = None) -> tuple[str, ...]:
    """Returns the devices that foreign code may open: harmless ones, shared memory, and the GPU if it may use one."""
    harmless = tuple(f"/dev/{name}" for name in _DEVICES)
    if gpu is None:
        return harmless
    return (*harmless, *(str(path) for path in Path("/dev").glob("nvidia*") if str(path) not in gpu.closed))


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that builds and CUDA read. All others, such as tokens and keys, are dropped."""
    return {name: value for name, value in environment.items()
            if name in _KEPT_VARIABLES or (name.startswith(_KEPT_PREFIXES) and name not in _DROPPED_VARIABLES)}
