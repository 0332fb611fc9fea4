"""The build service while another process prunes, clears or damages its cache."""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.cache import Cache
from inlinebench.compile.cache.prune import IN_USE_S, prune
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.target import CpuTarget


def request(answer: int) -> BuildRequest:
    source = f'extern "C" int answer() {{ return {answer}; }}'
    return BuildRequest("small", (source,), no_implicit_headers=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[BuildService]:
    service = BuildService(tmp_path, CpuTarget(), BuildSettings(60, cache_limit=0))
    yield service
    service.close()


def built(service: BuildService, answer: int) -> Path:
    outcome = service.build(request(answer))
    assert outcome.library is not None, outcome.log
    assert ctypes.CDLL(str(outcome.library)).answer() == answer
    return outcome.library


def grow_old(path: Path) -> None:
    then = time.time() - 2 * IN_USE_S
    os.utime(path, (then, then))


def test_a_pruned_or_damaged_library_is_built_again(service: BuildService) -> None:
    library = built(service, 1)
    shutil.rmtree(library.parent)
    assert built(service, 1) == library
    library.unlink()  # the damaged library must be a new file, because this process has mapped the old one
    library.write_bytes(b"damaged")
    assert built(service, 1) == library


def test_a_cache_hit_counts_as_a_use(service: BuildService) -> None:
    library = built(service, 1)
    grow_old(library.parent)
    built(service, 1)
    assert prune(service._cache.folder, 0).libraries == 0


def test_the_cache_limit_is_enforced(service: BuildService) -> None:
    library = built(service, 1)
    grow_old(library.parent)
    built(service, 2)
    assert not library.exists()


@pytest.mark.slow
def test_runtime_libraries_are_kept_until_the_service_closes(service: BuildService, tmp_path: Path) -> None:
    runtime_libraries = service.runtime_libraries()
    assert runtime_libraries.runtime is not None and runtime_libraries.allocator is not None
    for library in (runtime_libraries.runtime, runtime_libraries.allocator):
        grow_old(library)
    assert prune(tmp_path, 0).libraries == 0
    service.close()
    assert prune(tmp_path, 0).libraries == 2
    assert service.runtime_libraries() == runtime_libraries
    assert runtime_libraries.runtime.exists() and runtime_libraries.allocator.exists()


@pytest.mark.slow
def test_runtime_libraries_that_are_pruned_when_found_are_built_again(
    service: BuildService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.runtime_libraries()
    service.close()
    hold, pruned = Cache.hold, []

    def prune_first(cache: Cache, library: Path) -> bool:
        if not pruned:
            pruned.append(library)
            library.unlink()
        return hold(cache, library)

    monkeypatch.setattr(Cache, "hold", prune_first)
    runtime_libraries = service.runtime_libraries()
    assert pruned == [runtime_libraries.runtime]
    assert runtime_libraries.runtime is not None and runtime_libraries.runtime.exists()
