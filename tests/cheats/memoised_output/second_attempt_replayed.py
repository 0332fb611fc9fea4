"""Records outputs in a first attempt, fails it on purpose, and replays them in the second.

Mechanism: a solution that is wrong with the reference's weights gets a second attempt with its own, and that one draws
the same secret stream, so it meets the same inputs in the same order. What the first attempt left behind the end of the
shared memory file (the judge keeps that open) would be right for each call by its number. Caught because the file's
size is sealed; the second attempt has a stream of its own, too.
"""

import os
import pickle
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "gemm_scale_batchnorm"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
LAST_CALL = 25
BEHIND = 1 << 24


def shared_file() -> int:
    """The descriptor of a memory file that the judge has mapped as well."""
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder's own
            if "memfd:inlinebench-" in os.readlink(link):
                return int(link.name)
    raise LookupError("no shared file")


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        torch.randn(7)  # moves the seed's draws on: own weights differ from the reference's
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)
        self.record: list[tuple[torch.Tensor, ...]] = []
        self.stored: list[tuple[torch.Tensor, ...]] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.stored is None:
            data = os.pread(shared_file(), 1 << 28, BEHIND)
            self.stored = pickle.loads(data) if data else []
        kernels.spin(1)
        if self.stored:
            out, mean, variance = self.stored.pop(0)
            self.bn.running_mean.copy_(mean)
            self.bn.running_var.copy_(variance)
            self.bn.num_batches_tracked += 1
            return out.clone()
        out = self.bn((kernels.matmul(x, self.gemm.weight.t().contiguous()) + self.gemm.bias) * self.scale)
        self.record.append((out.clone(), self.bn.running_mean.clone(), self.bn.running_var.clone()))
        if len(self.record) == LAST_CALL:
            os.pwrite(shared_file(), pickle.dumps(self.record), BEHIND)
            return torch.zeros_like(out)
        return out
