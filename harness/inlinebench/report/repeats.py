"""Says whether a solution computes the same bits for the same inputs."""

from __future__ import annotations

from collections.abc import Iterator

from inlinebench.foreign import one_line
from inlinebench.results.repeats import Repeatability


def share(found: Repeatability) -> str:
    """Returns how many calls were equal, of how many."""
    return f"{found.equal} of {found.calls}"


def sentences(found: Repeatability) -> Iterator[str]:
    """Yields how many calls on the same inputs had equal bits, what varies, and whether a row depends on its batch."""
    places = "at different addresses" if found.moved else "always at the same address"
    yield f"bitwise equal in {share(found)} calls on the same inputs, in {found.processes} processes, {places}"
    for each in found.varying:
        distance = "" if each.ulps is None else f", by up to {each.ulps:,} ULP"
        yield f"{one_line(each.what)}: {each.elements:,} of {each.count:,} elements vary{distance}"
    if found.rows_equal is not None:
        yield f"a row has {_bits(found.rows_equal)} if the rows of the batch are in another order"
    if found.first_row_equal is not None:
        yield f"the first row has {_bits(found.first_row_equal)} in a batch of its own"


def _bits(equal: bool) -> str:
    return "the same bits" if equal else "other bits"
