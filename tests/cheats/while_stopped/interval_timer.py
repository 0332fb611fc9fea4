"""Has an alarm interrupt it all the time, and sets the inputs to zero in the handler.

Mechanism: an interval timer needs no right that a sandbox could refuse, and its signal arrives while the process is
stopped. Caught because a handler runs only after a SIGCONT, and reference and comparison read private inputs.
"""

import signal

import torch

from tests.cheats.waking import LateZeros

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


EVERY_S = 0.001


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        known = values[0].item()

        def zero(*_: object) -> None:
            if values[0].item() != known:
                values.zero_()

        signal.signal(signal.SIGALRM, zero)
        signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
