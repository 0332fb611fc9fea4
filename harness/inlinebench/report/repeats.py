"""Says whether a solution computes the same bits for the same inputs."""

from __future__ import annotations

from collections.abc import Iterator

from inlinebench.foreign import one_line
from inlinebench.results.repeats import Repeatability


def share(found: Repeatability) -> str:
    """Returns how many calls were equal, of how many."""
    return f"{found.equal} of {found.calls}"


def sentences(found: Repeatability) -> Iterator[str]:
    """Yields how many calls on the same inputs had equal bits, what varies, and whether rows depend on their place."""
    yield (f"bitwise equal in {share(found)} calls on the same inputs, in {found.processes} processes and "
           f"{found.placements} place{'s' * (found.placements > 1)} in memory")
    for each in found.varying:
        distance = "" if each.ulps is None else f", by up to {each.ulps} ULP"
        yield f"{one_line(each.what)}: {each.elements} of {each.count} elements vary{distance}"
    if found.rows_equal is not None:
        yield ("a row has the same bits wherever it is in the batch" if found.rows_equal else
               "a row's bits depend on its place in the batch, or on the other rows")
