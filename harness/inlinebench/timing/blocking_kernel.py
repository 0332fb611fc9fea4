"""How long the hold kernel may last, learnt from call to call."""

from __future__ import annotations

from dataclasses import dataclass

LIMITS_MS = (50.0, 500.0)
"""Tried in turn. Queuing one `forward` takes the host 10 µs to a few milliseconds; one that is still not queued after
the last limit waits for the device itself."""

SYNCHRONISING_MS = 0.2
"""For a `forward` that waits for the device: the hold then runs out anyway, but covers the first launches."""


@dataclass
class BlockingLimit:
    """Chooses the limit of each call; `ran_out` is told of every held call whose hold ran out."""

    _attempt: int = 0

    @property
    def limit_ms(self) -> float:
        return SYNCHRONISING_MS if self.synchronises else LIMITS_MS[self._attempt]

    @property
    def synchronises(self) -> bool:
        """Whether no hold was long enough, so that launches and waiting are part of the time."""
        return self._attempt >= len(LIMITS_MS)

    def ran_out(self) -> None:
        if not self.synchronises:
            self._attempt += 1
