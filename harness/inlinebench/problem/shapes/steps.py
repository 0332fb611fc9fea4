"""How far sizes are reduced, step by step, and what an evaluation at a derived shape may cost.

The limits follow from the CPU time of a check of five calls, in seconds, 3 of which are not spent in kernels. Both
solutions compute `x @ w.t()` with K = 256: one with a thread for each output, the other with a block of 256 threads and
nine barriers for each output. The last figure is the elapsed time of a third-party solution.

| outputs | products | a thread each | threads | a block each |
| ------: | -------: | ------------: | ------: | -----------: |
|   8,192 |    2.1 M |             5 |   2.1 M |           15 |
|  16,384 |    4.2 M |             5 |   4.2 M |           26 |
|  65,536 |   16.8 M |            14 |  16.8 M |          127 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from inlinebench.problem.shapes.cost import Cost

SMALL = 16
"""Numbers up to this are kept: sizes of windows, strides, dimensions. Only batch sizes and numbers of heads and groups
may become smaller."""
WARP = 32
"""Multiples of this stay multiples, and other sizes do not become multiples."""
LIMITS = Cost(elements=1 << 20, size=1 << 12, work=1 << 24, threads=1 << 22, rows=1 << 20)
"""The limits of a derived shape."""
CONFIRMING_LIMITS = Cost(elements=1 << 22, size=1 << 20, work=1 << 28, threads=1 << 27, rows=1 << 22)
"""The limits of a shape at which a failure is confirmed."""


@dataclass(frozen=True)
class Reduction:
    """How far sizes are reduced."""

    floor: float
    """Sizes are not reduced below this."""
    distinct: int
    """Sizes that differ become sizes that differ, up to about this one. Larger ones may become equal."""
    batch: float
    """Batch sizes are not reduced below this. If it is below 32, they need not stay multiples of 32."""
    parts: int = 2
    """Numbers of heads and groups are not reduced below this."""
    remainder: int = WARP
    """Sizes keep their remainder by this."""
    group: float = math.inf
    """The sizes of groups up to this are kept, and larger ones are not reduced below it. Those of heads always are."""
    grid: float | None = None
    """Lengths of images and sequences are not reduced below this; below 32, their multiples of 32 need not stay
    multiples. None: as other sizes."""


FEWEST_PER_GROUP = 16
"""Groups of at least as many elements have at least as many in every derived shape. With two, the mean of a group's
squares less the square of its mean is nothing but rounding."""

_SIZES = (
    Reduction(256, 1024, 256, 8), Reduction(256, 1024, 32, 8), Reduction(128, 512, 128, 8), Reduction(128, 512, 8, 8),
    Reduction(64, 256, 64, 8), Reduction(64, 256, 8, 4), Reduction(64, 256, 2), Reduction(32, 128, 32, 4),
    Reduction(32, 128, 4), Reduction(32, 64, 2), Reduction(32, 32, 2), Reduction(SMALL, SMALL, 2),
    Reduction(SMALL, SMALL, 2, remainder=8),
)
_VOLUMES = (Reduction(SMALL, SMALL, 2, remainder=8, grid=SMALL), Reduction(SMALL, SMALL, 2, remainder=8, grid=8))


def _with_groups(steps: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return tuple(replace(step, group=group) for step in steps for group in (math.inf, FEWEST_PER_GROUP))


STEPS = _with_groups(_SIZES)
"""From large shapes to small ones."""
VOLUME_STEPS = STEPS + _with_groups(_VOLUMES)
"""The same for windows that slide in three dimensions: 32 x 32 x 32 outputs of each channel are too much work."""
LARGER = 2
"""The number of larger steps to try if the reference does not run at the chosen one."""
ONLY_BATCH = Reduction(math.inf, 0, 2, 1 << 30)
CONFIRMING_STEPS = tuple(Reduction(floor, 4 * floor, 2, 8, grid=grid) for floor in (1 << 20, 4096, 2048, 1024, 512, 256)
                         for grid in (64, WARP, SMALL))
"""Sizes as the file has them, or nearly so, with few batches and short lengths. From large shapes to small ones."""
