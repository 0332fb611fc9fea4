"""Fails with a message whose lines are commands for the services that show it.

Mechanism: CI services and terminals interpret lines that begin with `::`, `##[` or an escape. An exception's text has
several lines, indented ones too, and ends up in the reason. Here each line of foreign text begins with a bar, and
control characters are shown as escapes.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "RuntimeError: "

COMMANDS = """first line
::stop-commands::forged
    ::error file=run_eval.py::indented
##[error]for Azure
##vso[task.complete result=Succeeded]
##teamcity[testFinished name='all']
[[ATTACHMENT|/etc/passwd]]
\x1b]0;title\x07\x9b31m\u202eseen backwards
\r::add-mask::p"""


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.scale_rows(diagonal, matrix)
        print(COMMANDS, flush=True)
        raise RuntimeError(COMMANDS)
