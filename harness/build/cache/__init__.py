"""The content-addressed cache of built libraries. `python -m harness.build.cache` shows, prunes and clears it."""

from harness.build.cache.contents import CPU_LIBRARIES, FACTS
from harness.build.cache.store import Cache

__all__ = ["CPU_LIBRARIES", "FACTS", "Cache"]
