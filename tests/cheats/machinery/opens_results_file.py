"""Opens the file that the results go to.

Mechanism: whoever can append to it writes a `passed` of its own. The name stands in the command line of the run, which
every process can read. This file only opens it, and answers with zeros where that goes well. The sandbox lets a
candidate write to its scratch folder alone.
"""

from pathlib import Path

import torch
from torch import nn

from tests.cheats.judge import parent_of, process_id
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


def results_file() -> Path:
    """What `--out` names in the command line of the judge's parent, the run."""
    run = parent_of(process_id())
    if run == 0:
        raise PermissionError("the run is out of sight")
    words = Path(f"/proc/{run}/cmdline").read_text().split("\0")
    return Path(words[words.index("--out") + 1])


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        results_file().open("ab").close()
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
