"""Ends its process with status 0 while it is constructed, before any call.

Mechanism: as an exit in `forward`, but at a moment when the harness has made no call yet, and might take a list of no
failures for a list of successes. Caught as the candidate's end before its answer.
"""

import os

from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "exited with status 0 before it replied"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        os._exit(0)
