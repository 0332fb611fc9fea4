"""The record of one call that is to be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from inlinebench.problem.forward import Output, Tensors
from inlinebench.problem.workload import Received


@dataclass(frozen=True)
class CallCheck:
    """Everything that is needed to check one call."""

    inputs: Sequence[torch.Tensor]
    """The tensor inputs as they were before the call, in private memory."""
    non_tensors: tuple[Any, ...]
    """The non-tensor arguments of the call."""
    random_seed: int
    """The seed that was set before `forward`."""
    states_before: Tensors
    """The reference's buffers before its call."""
    output: Output
    """The reference's output."""
    states_after: Tensors
    """The reference's buffers after its call."""
    plain_outputs: tuple[str, ...]
    """The candidate's non-tensor outputs, as Python literals."""
    changed_inputs: Mapping[int, torch.Tensor]
    """The inputs that the reference changes in place, by index, with the values that it left there."""
    received: Received = field(default_factory=Received)
    """What the candidate's call wrote."""
    thorough: bool = False
    """Whether all elements are judged by the rule, and not only those that are beyond the bound by the output's size.
    """
    outputs_written: bool = True
    """Whether the outputs are this call's. False if a later call of a loop has reused their memory."""
    states_written: bool = True
    """Whether the states are this call's. A later call of a batch overwrites them."""
