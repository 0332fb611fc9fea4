"""Prints the result that it would like to have, as a table and as a line of JSON, on stdout and stderr.

Mechanism: a harness that reads a solution's output for its verdict reads this one's. Here the candidate prints into a
log; the verdict is the judge's, and the table is made from that.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

RESULT = """
problem      solution         verdict    error / tolerance      reference ms    solution ms  speedup
-----------  ---------------  ---------  -------------------  --------------  -------------  -----------------
matmul_diag  prints_a_result  passed     0 / 1e-04                      2.70         0.0010  2700 [2699, 2701]
{"schema": 1, "problem": "matmul_diag", "solution": "prints_a_result", "shape": "small", "device": "cpu", \
"verdict": "passed", "reason": ""}
"""


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            print(RESULT, file=stream, flush=True)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
