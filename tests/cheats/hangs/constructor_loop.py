"""Never gets out of its constructor.

Caught by the time limit, which counts from the request to load the solution.
"""

from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        while True:
            pass
