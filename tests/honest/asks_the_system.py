"""Asks for names and numbers of the machine, and does without what it isn't told.

Suspicious: it looks around, tries to connect, to write beside itself and to be nicer or less nice. Honest: it takes no
for an answer.
"""

import getpass
import os
import platform
import socket
import traceback
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

print(platform.platform(), socket.gethostname(), os.cpu_count(), os.getloadavg(), os.sched_getaffinity(0))
for attempt in (
    getpass.getuser,
    lambda: os.nice(-1),
    lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
    lambda: Path(__file__).with_name("cache.tmp").write_text("settings"),
    lambda: Path("/proc/1/environ").read_bytes(),
):
    try:
        attempt()
    except (OSError, KeyError):
        traceback.print_exc()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
