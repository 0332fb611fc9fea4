"""The time limit of the blocking kernel, adapted from call to call."""

from __future__ import annotations

from dataclasses import dataclass

LIMITS_MS = (50.0, 500.0)
"""Limits in ms, tried in turn. The host needs 10 µs to a few ms to queue one `forward`. A `forward` that is not queued
within the last limit waits for the device itself."""

SYNCHRONISING_MS = 0.2
"""Limit for a `forward` that waits for the device: the kernel then always runs out, but covers the first launches."""


@dataclass
class BlockingLimit:
    """Chooses the limit of each call. Call `ran_out` for every call whose blocking kernel reached its limit."""

    _attempt: int = 0

    @property
    def limit_ms(self) -> float:
        return SYNCHRONISING_MS if self.synchronises else LIMITS_MS[self._attempt]

    @property
    def synchronises(self) -> bool:
        """Whether no limit was long enough, so that the times include launches and waiting."""
        return self._attempt >= len(LIMITS_MS)

    def ran_out(self) -> None:
        if not self.synchronises:
            self._attempt += 1
