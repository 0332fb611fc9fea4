"""The content-addressed cache of built libraries. `inlinebench cache` shows, prunes and clears it."""

from inlinebench.compile.cache.contents import CPU_LIBRARIES, FACTS
from inlinebench.compile.cache.store import Cache

__all__ = ["CPU_LIBRARIES", "FACTS", "Cache"]
