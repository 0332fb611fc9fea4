"""What the probe tells the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inlinebench.problem.forward import InputForm
from inlinebench.problem.variants import Variant
from inlinebench.timing.roofline import Work
from inlinebench.wire.arena import TensorMeta
from inlinebench.wire.backward import GradientForm

Trial = tuple[str, tuple[int, ...]]
"""A run that might crash or hang: a variant and the positions of the inputs that take it, or one of those below."""
IN_FLOAT64: Trial = ("in float64", ())
PERTURBED: Trial = ("on perturbed inputs", ())
COUNTED: Trial = ("with operations counted", ())


@dataclass(frozen=True)
class ProbeResult:
    """What the probe found out about a reference."""

    inputs: tuple[TensorMeta, ...]
    """Dtype, shape and strides of each input tensor."""
    input_form: InputForm
    """The structure of the arguments of `forward`."""
    outputs: tuple[TensorMeta, ...]
    """Dtype, shape and strides of each output tensor."""
    output_skeleton: Any
    """The nesting of the output, as `inlinebench.wire.tree.flatten` returns it."""
    output_is_tensor: tuple[bool, ...]
    """For each leaf of the output, whether it is a tensor."""
    mutated: tuple[int, ...]
    """The positions of the inputs that the reference changes in place."""
    may_alias: bool
    """Whether an output of the reference shares memory with an input, so that a solution's output may as well."""
    random: bool
    """Whether the outputs depend on random numbers that `forward` draws."""
    float64: bool
    """Whether the reference in float64 can be the oracle."""
    perturbable: bool
    """Whether the reference survives inputs that are slightly perturbed. It may raise, but not crash."""
    continuous: tuple[int, ...]
    """The positions of the inputs whose values may change a little. Empty without variants."""
    variants: dict[Variant, tuple[int, ...]]
    """For each admitted variant, the positions of the inputs that take it."""
    work: Work
    """The least bytes and operations of one call."""
    has_nan: bool = False
    """Whether an output has a NaN."""
    gradients: GradientForm | None = None
    """What a call differentiates. None without a backward."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """What each output tensor is, in words: an output of `forward`, or the gradient of an input or a parameter."""
        names = () if self.gradients is None else self.gradients.names
        count = len(self.outputs) - len(names)
        return (*(("output",) if count == 1 else (f"output {index}" for index in range(count))), *names)


@dataclass(frozen=True)
class CannotRun:
    """The reference cannot be evaluated."""

    reason: str
    """The reason, for the result."""
    own_fault: bool = True
    """Whether the problem is at fault. False if this machine lacks memory or a package."""
    lacks_package: bool = False
    """Whether the file imports a package that is not installed."""
    beyond_limits: bool = False
    """Whether it takes too much memory or time, so that a smaller shape may do."""


@dataclass(frozen=True)
class ProbeDone:
    """Probe to judge: the probe of a problem has ended."""

    outcome: ProbeResult | CannotRun
    """What the probe found, or why the reference cannot be evaluated."""
    healthy: bool
    """Whether the process can probe other problems. After a CUDA error, every CUDA call in the process fails."""


@dataclass(frozen=True)
class Trying:
    """Probe to judge: a trial begins that might crash or hang."""

    trial: Trial
    """The trial."""
