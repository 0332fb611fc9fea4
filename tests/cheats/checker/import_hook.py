"""Hooks the import of anything that compares, and leaves hooks for later processes in its folder; returns zeros.

Mechanism: a finder on `sys.meta_path` serves a checker of its own to whoever imports one, and Python runs a
`sitecustomize.py` that it finds on its path at every start. Caught because the judge imported its checker long
before, and starts no Python in the candidate's folder.
"""

import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
HOOK = "import torch; torch.equal = torch.allclose = lambda *_, **__: True\n"


class Hook:
    """Finds and loads modules whose functions all agree."""

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> ModuleSpec | None:
        wanted = any(word in name for word in ("judge", "compare", "check", "verify"))
        return ModuleSpec(name, self) if wanted else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.compare = module.check = lambda *_args, **_named: ""


sys.meta_path.insert(0, Hook())
for name in ("sitecustomize.py", "usercustomize.py", "torch.py", "conftest.py"):
    Path(name).write_text(HOOK)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(matrix)
