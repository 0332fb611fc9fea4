"""The record of one call that is to be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inlinebench.problem.forward import Output, Tensors


@dataclass(frozen=True)
class CallCheck:
    """Everything that is needed to check one call."""

    inputs: Sequence[torch.Tensor]
    """The tensor inputs of the reference's call, for the oracle."""
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
    buffers: int = 0
    """The index of the set of buffers that holds the candidate's inputs and outputs."""
    thorough: bool = False
    """Whether all elements are judged by the rule, and not only those that are beyond the bound by the output's size.
    """
    outputs_written: bool = True
    """Whether the outputs are this call's. False if a later call of a loop has reused their memory."""
    states_written: bool = True
    """Whether the shared state buffers hold this call's states. A later call of a batch overwrites them."""
    handed_in: Sequence[torch.Tensor] | None = None
    """Copies of the candidate's outputs, in case work that it left on the GPU changes the buffers. None: read these."""
