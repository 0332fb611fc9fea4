"""Sets the inputs to zero from an orphan.

Mechanism: a process whose parent has ended belongs to another one, so that it is not below its maker. Caught because
everything is below the supervisor, and reference and comparison read private inputs.
"""

import os

import torch

from tests.cheats.waking import LateZeros, keep_at_zero

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                keep_at_zero(values)
            os._exit(0)
        os.waitpid(child, 0)
