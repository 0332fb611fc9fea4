"""The record of whether a solution computes the same bits for the same inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Varying:
    """A tensor whose bits vary between calls on the same inputs. Raises ValueError for counts that cannot be."""

    what: str
    """The tensor: `output`, `output 1`, or `input 1, which the reference changes`."""
    elements: int
    """The number of elements that differed from the first call's in any call."""
    count: int
    """Its number of elements."""
    ulps: int | None = None
    """The largest distance of an element from the first call's, in units in the last place; absent for integers, and if
    it is NaN or infinite."""

    def __post_init__(self) -> None:
        if not 1 <= self.elements <= self.count:
            raise ValueError(f"{self.elements} of {self.count} elements can't vary")


@dataclass(frozen=True)
class Repeatability:
    """Results of calls on the same inputs (`--determinism`), compared bit by bit with the first call's.

    Raises ValueError if a tensor varies although all calls were equal, or the reverse, and if there is something about
    rows although a tensor varies.
    """

    calls: int
    """The number of calls."""
    equal: int
    """How many of them had the bits of the first one, itself included."""
    processes: int
    """The number of processes that made them."""
    moved: bool
    """Whether inputs were at different places in memory."""
    varying: tuple[Varying, ...] = ()
    """The tensors that vary."""
    rows_equal: bool | None = None
    """Whether each row of the batch has the same bits if the rows are in another order; absent if the bits vary, if the
    first dimension is not a batch, or if that is not known."""
    first_row_equal: bool | None = None
    """Whether the first row has the same bits in a batch of its own; absent as `rows_equal` is, and if the reference or
    the solution does not compute a batch of one row."""

    def __post_init__(self) -> None:
        if not 1 <= self.equal <= self.calls or (self.equal == self.calls) is bool(self.varying):
            raise ValueError(f"{self.equal} of {self.calls} calls were equal, but {len(self.varying)} tensors vary")
        if self.processes < 1:
            raise ValueError("results come from a process")
        if self.varying and not self.rows_equal is self.first_row_equal is None:
            raise ValueError("where the bits vary anyway, those of rows say nothing")
