"""Sends the judge a pickle in place of the text of a plain output.

Mechanism: outputs that are no tensors travel beside the buffers, as text; `repr` of a subclass of `str` may be any
text, and a judge that evaluated or unpickled it would run what it says. Caught because the text is compared and
nothing else.
"""

import pickle

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "mixed_outputs"
EXPECTED = "wrong"
CAUGHT_BY = "a plain output is "


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("import torch; torch.equal = lambda *_: True",)


class Words(str):
    """Looks like a string and prints as something else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"__import__('pickle').loads({pickle.dumps(Bomb())!r})"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[object, ...]:
        kernels.spin(1)
        return x.sum(), x.argsort(), x > 0, 0.1 + 0.2, {"shape": Words("flat"), "largest": x.amax()}
