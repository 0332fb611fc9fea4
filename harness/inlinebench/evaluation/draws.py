"""Draws what each call gets, from random numbers that a candidate cannot predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from inlinebench.evaluation.buffer_rotation import BufferRotation
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.packing import pack


@dataclass(frozen=True)
class Drawn:
    """A call with the inputs that were drawn for it."""

    buffer_set: int
    """The set of buffers."""
    tensors: list[torch.Tensor]
    """The judge's private copy of the inputs."""
    non_tensors: tuple[Any, ...]
    """The non-tensor arguments."""
    variant: Variant
    """The variant of the inputs."""
    change: str
    """How the inputs differ from those drawn, in words."""
    random_seed: int
    """The seed that is set before `forward`."""

    def facts(self) -> dict[str, Any]:
        """Returns what the candidate needs to know about the call."""
        return {"set": self.buffer_set, "non_tensors": pack(self.non_tensors), "random_seed": self.random_seed}


class Draws:
    """The draws for one candidate. `name` distinguishes the candidates of a run.

    `secret` decides everything that a candidate must not know beforehand. What it is sent comes from `public`, another
    source, so that it can infer nothing about the inputs.
    """

    def __init__(self, workload: Workload, seed: int, name: str) -> None:
        self._workload = workload
        self.secret, self.public = SecretRandom(seed, name), SecretRandom(seed, f"{name}/public")
        self.variants = workload.source.variants(self.secret)
        """The variants of the inputs, one call after the other."""
        self._buffer_rotation = BufferRotation(len(workload.sets), self.secret)

    def next_set(self) -> int:
        """Returns the set of buffers for the next call."""
        return self._buffer_rotation.next()

    def next(self, buffer_set: int | None = None, variant: Variant | None = None) -> Drawn:
        """Draws the inputs of a call, in the judge's private memory. What is None is chosen."""
        source = self._workload.source
        variant = next(self.variants) if variant is None else variant
        seed = self.secret.getrandbits(62)
        chosen = self.next_set() if buffer_set is None else buffer_set
        tensors, non_tensors = self._workload.draw(chosen, seed, variant)
        return Drawn(chosen, tensors, non_tensors, variant, source.describe(variant, seed), self.public.getrandbits(62))
