"""Says whether a solution computes the same bits for the same inputs."""

from __future__ import annotations

from collections.abc import Iterator

from inlinebench.foreign import one_line
from inlinebench.results.repeats import Repeatability

OTHER_ORDER = "if the rows of the batch are in another order"
ALONE = "in a batch of its own"


def share(found: Repeatability) -> str:
    """Returns how many calls were equal, of how many."""
    return f"{found.equal} of {found.calls}"


def sentences(found: Repeatability) -> Iterator[str]:
    """Yields how many calls on the same inputs had equal bits, what varies, and whether a row depends on its batch."""
    places = "at different addresses" if found.moved else "always at the same address"
    yield f"bitwise equal in {share(found)} calls on the same inputs, in {found.processes} processes, {places}"
    yield from findings(found)
    if found.rows_equal:
        yield f"a row has the same bits {OTHER_ORDER}"
    if found.first_row_equal:
        yield f"the first row has the same bits {ALONE}"


def findings(found: Repeatability) -> Iterator[str]:
    """Yields what is not equal in all bits."""
    for each in found.varying:
        distance = "" if each.ulps is None else f", by up to {each.ulps:,} ULP"
        yield f"{one_line(each.what)}: the bits of {each.elements:,} of {each.count:,} elements vary{distance}"
    if found.rows_equal is False:
        yield f"a row has other bits {OTHER_ORDER}"
    if found.first_row_equal is False:
        yield f"the first row has other bits {ALONE}"
