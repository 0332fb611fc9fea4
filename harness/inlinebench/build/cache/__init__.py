"""The content-addressed cache of built libraries. `python -m inlinebench.build.cache` shows, prunes and clears it."""

from inlinebench.build.cache.contents import CPU_LIBRARIES, FACTS
from inlinebench.build.cache.store import Cache

__all__ = ["CPU_LIBRARIES", "FACTS", "Cache"]
