"""Leaves a file wherever caches and temporary files usually lie.

Mechanism: a sandbox that leaves one folder writable, because compilers or libraries want it, lets a solution keep its
outputs there. The folders of the harness, of torch and of Triton are tried as well as the usual ones.
"""

import os
import pwd
from pathlib import Path

import torch

import inlinebench
from tests.cheats.left_behind.shared import Returning
from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_SANDBOX = True

HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
BUILT = Path(kernels.__file__).parent
FOLDERS = [
    *map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/run/lock", "/run/user/0", "/var/cache")),
    HOME, HOME / ".cache", HOME / ".triton", HOME / ".nv", HOME / ".cache/torch", HOME / ".cache/torch_extensions",
    BUILT, BUILT.parent, BUILT.parent.parent, Path(torch.__file__).parent, Path(inlinebench.__file__).parent,
    Path.cwd().parent, Path(os.environ.get("TMPDIR", "/tmp")).parent,
]
NAME = ".inlinebench-left-behind"


class ModelNew(Returning):
    def recall(self) -> bool:
        found = False
        for folder in FOLDERS:
            try:
                (folder / NAME).unlink()
                found = True
            except OSError:
                continue
        return found

    def leave(self) -> None:
        written = []
        for folder in FOLDERS:
            try:
                (folder / NAME).write_bytes(b"outputs")
                written.append(folder)
            except OSError:
                continue
        if not written:
            raise PermissionError("no folder takes a file")
        print("written to", *written)
