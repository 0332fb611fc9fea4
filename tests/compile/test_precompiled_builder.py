"""Precompiled headers: made when they pay, read by builds, and never a difference in what comes out."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.cache import CPU_LIBRARIES, Cache
from inlinebench.compile.precompiled import BINDING, KERNEL, PRECOMPILED_DIR, WORTH_IT
from inlinebench.compile.precompiled.builder import PrecompiledHeaders
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.target import CpuTarget

pytestmark = pytest.mark.slow

CUDA = """
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
"""
REQUEST = BuildRequest("twice", ("torch::Tensor run(torch::Tensor x);",), (CUDA,), {"run": ""})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Path]:
    """A cache whose headers were precompiled by the least number of builds, all of which but the last fail at once.

    Later tests find the headers in the session's cache.
    """
    place = tmp_path_factory.mktemp("precompiled")
    service = BuildService(place, CpuTarget(), BuildSettings(600))
    for number in range(WORTH_IT):
        assert not list((place / CPU_LIBRARIES).glob("prefix-*"))
        service.build(replace(REQUEST, cuda_sources=(f"#error {number}",)))
    service.close()
    for made in (place / CPU_LIBRARIES).glob("prefix-*"):
        theirs = Cache(cache).room(CPU_LIBRARIES) / made.name
        copied = shutil.copytree(made, theirs.with_name(f"{made.name}-copied"), copy_function=os.link)
        with suppress(OSError):  # another process made them there
            os.replace(copied, theirs)
        shutil.rmtree(copied, ignore_errors=True)
    yield place
    shutil.rmtree(place)  # 700 MB


def build(place: Path, request: BuildRequest) -> tuple[Path, str]:
    service = BuildService(place, CpuTarget(), BuildSettings(600))
    outcome = service.build(request)
    service.close()
    assert outcome.library is not None, outcome.log
    return outcome.library, outcome.log


def symbols(library: Path) -> list[str]:
    """Returns the names that a library exports and needs, with versions."""
    done = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    return sorted(line[17:] for line in done.stdout.splitlines())


def libraries(library: Path) -> list[str]:
    """Returns the libraries that are loaded with a library."""
    done = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True)
    return [line.split("[")[1] for line in done.stdout.splitlines() if "NEEDED" in line]


def test_headers_are_precompiled_after_enough_builds(place: Path) -> None:
    (folder,) = (place / CPU_LIBRARIES).glob("prefix-*")
    assert {f"{KERNEL}.gch", f"{BINDING}.gch"} <= {path.name for path in folder.iterdir()}


def test_a_build_with_precompiled_headers_gives_the_same_library(place: Path, tmp_path: Path) -> None:
    listed = replace(REQUEST, extra_cflags=("-H",))
    made, log = build(place, listed)
    assert f"! {place}" in log and f"{BINDING}.gch" in log
    plain, plain_log = build(tmp_path, listed)
    assert f"{BINDING}.gch" not in plain_log
    assert symbols(made) == symbols(plain) and libraries(made) == libraries(plain)
    assert made.parent.name == plain.parent.name  # the same key, so the cache works where nothing is precompiled


@pytest.mark.parametrize("flags", [("-O3", "-march=native"), ("-D_GLIBCXX_ASSERTIONS",)])
def test_builds_with_other_flags_work(place: Path, flags: tuple[str, ...]) -> None:
    build(place, replace(REQUEST, extra_cflags=flags))


def test_cache_hits_do_not_trigger_precompilation(tmp_path: Path) -> None:
    """Headers that no build needs are not precompiled."""
    small = replace(REQUEST, cpp_sources=("",), cuda_sources=("__global__ void k() {}",), functions=None,
                    no_implicit_headers=True)
    for _ in range(2 * WORTH_IT):
        build(tmp_path, small)
    assert not list((tmp_path / CPU_LIBRARIES).glob("prefix-*"))


def test_an_error_names_the_authors_line(place: Path) -> None:
    service = BuildService(place, CpuTarget(), BuildSettings(600))
    outcome = service.build(replace(REQUEST, cuda_sources=(CUDA + 'int broken = "a text";\n',)))
    service.close()
    assert outcome.library is None and "cuda_sources:8" in outcome.reason


def test_builds_work_if_precompilation_fails(tmp_path: Path) -> None:
    tried = []

    def ninja(folder: Path) -> tuple[int, str, None]:
        tried.append(folder)
        return 1, "planted", None

    precompiled = PrecompiledHeaders(Cache(tmp_path), ninja, CpuTarget())
    assert {precompiled.ask() for _ in range(3 * WORTH_IT)} == {False}
    assert precompiled.folder() == PRECOMPILED_DIR
    assert len(tried) == 1
    assert not list((tmp_path / CPU_LIBRARIES).glob("prefix-*")) and not list((tmp_path / CPU_LIBRARIES).glob("tmp*"))


def test_builds_do_not_wait_while_headers_are_precompiled(tmp_path: Path) -> None:
    begun, over = Event(), Event()

    def ninja(folder: Path) -> tuple[int, str, None]:
        begun.set()
        assert over.wait(60)
        return 0, "", None

    precompiled = PrecompiledHeaders(Cache(tmp_path), ninja, CpuTarget())
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(lambda: [precompiled.ask() for _ in range(WORTH_IT)][-1])
        assert begun.wait(60)
        assert precompiled.ask() is False
        over.set()
        assert making.result() is True


def test_builds_work_if_the_disk_is_full(tmp_path: Path) -> None:
    def ninja(folder: Path) -> tuple[int, str, None]:
        raise OSError(errno.ENOSPC, "planted")

    precompiled = PrecompiledHeaders(Cache(tmp_path), ninja, CpuTarget())
    assert {precompiled.ask() for _ in range(2 * WORTH_IT)} == {False} == {precompiled.make()}


def test_headers_made_by_another_process_are_used(tmp_path: Path) -> None:
    """The other process makes them between this one's check and its start, and again while this one is running."""
    cache, runs = Cache(tmp_path), []

    def ninja(folder: Path) -> tuple[int, str, None]:
        runs.append(folder)
        (folder / "made").touch()
        other = tmp_path / CPU_LIBRARIES / folder.name
        other.mkdir(exist_ok=True)
        (other / "by another process").touch()
        return 0, "", None

    first = PrecompiledHeaders(cache, ninja, CpuTarget())
    assert [first.ask() for _ in range(WORTH_IT)] == [False] * (WORTH_IT - 1) + [True]
    found = first.folder()
    assert (found / "by another process").exists() and len(runs) == 1
    assert PrecompiledHeaders(cache, ninja, CpuTarget())._make({}, found) and len(runs) == 1
