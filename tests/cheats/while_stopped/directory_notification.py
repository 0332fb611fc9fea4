"""Is continued when a file of its folder is touched.

Mechanism: fcntl's F_NOTIFY sends the signal of F_SETSIG when something in a folder changes or is read, such as a file
that the judge opens. Caught because reference and comparison read private inputs, and the sandbox refuses both.
"""

import fcntl
import os

import torch

from tests.cheats.waking import LateZeros, continue_when_readable, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        folder = os.open(".", os.O_RDONLY)
        continue_when_readable(folder)
        try:
            fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_MULTISHOT | fcntl.DN_ACCESS | fcntl.DN_MODIFY)
        except OSError:
            return
