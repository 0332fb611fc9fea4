"""Texts on how a kernel was launched, and on what the GPU counted."""

from __future__ import annotations

from collections.abc import Iterator

from inlinebench.foreign import one_line
from inlinebench.results.launches import Counters, Launched, Multiprocessors, residency
from inlinebench.results.result import KernelShare

LONGEST_STALL = 40


def described(share: KernelShare, sm: Multiprocessors | None) -> str:
    """Returns what is known about the launches of a kernel in one line; "" if nothing is known."""
    known = []
    if share.launches is not None and share.launches > 1:
        known.append(f"{share.launches:,} launches")
    if share.launch is not None:
        known.append(_configuration(share.launch, sm))
    if share.counters is not None:
        known.append(", ".join(_counted(share.counters)))
    return "; ".join(filter(None, known))


def _configuration(launch: Launched, sm: Multiprocessors | None) -> str:
    text = f"{launch.blocks:,} x {launch.threads:,} threads, {launch.registers} registers"
    if launch.shared_bytes:
        text += f", {launch.shared_bytes:,} bytes of shared memory"
    return text if sm is None else f"{text}, occupancy up to {residency(launch, sm).occupancy:.0%}"


def _counted(counters: Counters) -> Iterator[str]:
    shares = {"DRAM": counters.dram_share, "L2": counters.l2_share, "shared memory": counters.shared_share,
              "tensor cores": counters.tensor_share}
    yield from (f"{what} {share:.0%}" for what, share in shares.items() if share is not None)
    if counters.stall is not None and counters.stall_share is not None:
        yield f"warps wait for {one_line(counters.stall, LONGEST_STALL)} {counters.stall_share:.0%}"
