"""Takes a cross entropy's sums of exponentials from the first sixteenth of the classes.

Mechanism: the loss is a mean over thousands of rows of logarithms of long sums. Each row's logarithm is off by 0.03,
their mean by a hundredth of that, and the tolerance for a loss near 11 is 0.002 in float32. What sampling adds on
average is known and taken off. Signs change nothing; inputs of a larger scale are read as a whole.
"""

import math

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "cross_entropy"
EXPECTED = "wrong"
CAUGHT_BY = "its one element differs"

PART = 16
USUAL = 1.2


class ModelNew(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        classes = logits.shape[1]
        part = PART if float(logits[0].std()) < USUAL else 1
        used = logits[:, : classes // part]
        top = used.amax(1, keepdim=True)
        terms = torch.exp(used - top)
        count = terms.shape[1]
        means = kernels.matmul(terms, torch.ones(count, 1, device=logits.device)).flatten() / count
        bias = terms.var(1) / means.square() / count * (1 - 1 / part) / 2
        sums = means.log() + bias + top.flatten() + math.log(classes)
        return (sums - logits.gather(1, target[:, None]).flatten()).mean()
