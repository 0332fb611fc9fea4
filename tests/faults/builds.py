"""The life of a cache: builds a small library, notes it, finds it again, and prunes. Prints the outcome.

    python -m tests.faults.builds CACHE [REASON]
"""

from __future__ import annotations

import sys
from pathlib import Path

from inlinebench.builds.request import BuildRequest
from inlinebench.cli.exits import ended, show
from inlinebench.compile.cache.prune import prune
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.target import CpuTarget

SOURCE = 'extern "C" int answer() { return 42; }'


def main() -> int:
    """Returns 0 if the library was built, and 1 if not."""
    folder = Path(sys.argv[1])
    service = BuildService(folder, CpuTarget(), BuildSettings(60, jobs=1, cache_limit=1 << 30))
    try:
        name = service.solution_name(b"solution", b"init")
        known = service.has_built(name)
        outcome = service.build(BuildRequest("small", (SOURCE,), no_implicit_headers=True))
        service.note_built(name, [outcome])
        prune(folder, 1 << 30)
    finally:
        service.close()
    show(f"{outcome.verdict}: {outcome.reason}" if outcome.library is None else f"built, known: {known}")
    return int(outcome.library is None)


sys.exit(ended("builds", main))
