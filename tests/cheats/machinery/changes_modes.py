"""Sets the mode and the times of files that it may not write: the harness's, another solution's, the user's home.

Mechanism: who may read a file's facts may change its mode if he owns it, and rules for opening files say nothing about
that. Without the right to read it, a problem fails for every solution that comes after this one; with a mode for
everybody, a key is no secret any more. Each mode is set to what it is. The answer is right where one of them could be.
"""

import os
import pwd
import stat
from pathlib import Path

import torch
from torch import nn

import inlinebench
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

PACKAGE = Path(inlinebench.__file__).parent
PATHS = (PACKAGE / "__init__.py", PACKAGE.parents[1] / "solutions" / PROBLEM / "naive.py", Path(kernels.__file__),
         Path(pwd.getpwuid(os.getuid()).pw_dir))


def changed() -> list[str]:
    found = []
    for path in PATHS:
        try:
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))
        except OSError:
            continue
        found.append(str(path))
    return found


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        paths = changed()
        if not paths:
            raise PermissionError("no file's mode can be set")
        print("modes that could be set:", *paths)
        return kernels.scale_rows(diagonal, matrix)
