"""Sets the inputs to zero when the judge's memory grows, which tells where it is in its work.

Mechanism: between a checksum of the inputs and their use the judge allocates, and /proc/JUDGE/statm shows when. A
process that runs then changes what the judge is about to read. Caught because reference and comparison read private
inputs. In the sandbox, /proc also shows no judge.
"""

import os
from pathlib import Path

import torch

from tests.cheats.judge import process_id
from tests.cheats.waking import LateZeros

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        judge = Path(f"/proc/{process_id()}/statm")
        if os.fork():
            return
        known = b""
        while True:
            try:
                seen = judge.read_bytes()
            except OSError:
                seen = os.urandom(1)  # without a sign of the judge, at any moment
            if seen != known:
                values.zero_()
            known = seen
