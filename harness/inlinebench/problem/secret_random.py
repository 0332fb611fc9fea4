"""A random source that cannot be predicted from its output: keyed BLAKE2b (RFC 7693) in counter mode."""

from __future__ import annotations

import hashlib
import random
from typing import Any, NoReturn

BLOCK_BYTES = 64


class SecretRandom(random.Random):
    """The stream of random numbers for one purpose of a run.

    Streams with different purposes tell nothing about each other, nor does a stream about the seed: who predicts a bit
    has broken BLAKE2b. The same seed and purpose give the same stream, so that `--seed` replays a run.

    Args:
        seed: the secret seed of the run.
        purpose: what the numbers are for. It is not secret.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=BLOCK_BYTES).digest()
        self._purpose = purpose.encode()
        self._blocks = 0
        self._left = b""
        super().__init__()

    def seed(self, *_args: Any, **_named: Any) -> None:
        """Does nothing. The seed of a stream is fixed."""

    def random(self) -> float:
        """Returns a number from [0, 1) with 53 random bits."""
        return self.getrandbits(53) * 2.0**-53

    def getrandbits(self, k: int) -> int:
        """Returns an integer from [0, 2**k)."""
        if k < 0:
            raise ValueError("the number of bits must be non-negative")
        return int.from_bytes(self._take(-(-k // 8)), "big") >> (-k % 8)

    def getstate(self) -> NoReturn:
        raise NotImplementedError("the state of a secret stream is not given away")

    def setstate(self, state: object) -> NoReturn:
        raise NotImplementedError("a secret stream cannot be set back")

    def _take(self, count: int) -> bytes:
        while len(self._left) < count:
            block = self._blocks.to_bytes(8, "big") + self._purpose
            self._left += hashlib.blake2b(block, key=self._key, digest_size=BLOCK_BYTES).digest()
            self._blocks += 1
        taken, self._left = self._left[:count], self._left[count:]
        return taken
