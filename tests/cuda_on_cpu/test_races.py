"""Each planted race is found with the lines of its accesses, and its honest twin is not accused."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cuda_on_cpu import Runtime, runtime_library

from .device import build_for_cpu, looking_for_races

pytestmark = pytest.mark.slow

_FOLDER = Path(__file__).parent / "races"
_ELEMENTS = 1024
_SCHEDULES = (0, 1)


@dataclass(frozen=True)
class _Planted:
    """A kernel with a bug. Its twin's name ends in `_fixed`."""

    file: Path
    name: str
    lines: frozenset[int]
    """The lines of the accesses that race, of the read of what nothing wrote, or of the barriers."""


def _planted() -> Iterator[_Planted]:
    for path in sorted(_FOLDER.glob("*.cu")):
        lines = path.read_text().splitlines()
        found = ((number, re.search(r"// @(\w+)$", line)) for number, line in enumerate(lines, 1))
        marks = [(number, match[1]) for number, match in found if match]
        for name in dict.fromkeys(name for _, name in marks):
            yield _Planted(path, name, frozenset(number for number, marked in marks if marked == name))


_PLANTED = list(_planted())


@cache
def _built(file: Path, folder: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(build_for_cpu(file, folder)))


def _findings(file: Path, launcher: str, folder: Path) -> list[str]:
    """Runs a launcher in both schedules. Returns what was found, one message each, whatever its grade."""
    library, runtime = _built(file, folder), Runtime(runtime_library(folder))
    all_found: list[str] = []
    for schedule in _SCHEDULES:
        runtime.set_block_order(schedule)
        with looking_for_races(runtime) as found:
            unordered = _launch(library, launcher, runtime)
        all_found += [*found, *unordered]
    runtime.set_block_order(0)
    return all_found


def _launch(library: ctypes.CDLL, launcher: str, runtime: Runtime) -> list[str]:
    """Calls a launcher. Returns what writes to its results without being ordered before they are read."""
    library.case_allocate.restype = ctypes.c_void_p
    arrays = [np.linspace(1.0, 2.0, _ELEMENTS, dtype=np.float32), np.zeros(_ELEMENTS, np.float32),
              np.zeros(_ELEMENTS, np.int32)]
    buffers = [ctypes.c_void_p(library.case_allocate(ctypes.c_size_t(array.nbytes))) for array in arrays]
    for buffer, array in zip(buffers, arrays, strict=True):
        library.case_copy_in(buffer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
    getattr(library, launcher)(*buffers)
    unordered = [runtime.find_unordered(buffer.value or 0, array.nbytes)
                 for buffer, array in zip(buffers, arrays, strict=True)]
    for buffer in buffers:
        library.case_release(buffer)
    return [text for text in unordered if text]


_IDIOMS = [(path, name) for path in sorted((_FOLDER.parent / "idioms").glob("*.cu"))
           for name in re.findall(r"^HONEST\w*\((\w+)\b", path.read_text(), re.MULTILINE)]


@pytest.mark.parametrize(("file", "name"), _IDIOMS, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_nothing_is_said_about_a_popular_idiom(file: Path, name: str, build_folder: Path) -> None:
    assert _findings(file, name, build_folder) == []


def test_there_are_at_least_sixty_planted_bugs_in_twelve_families() -> None:
    assert len(_PLANTED) >= 60
    assert len({planted.file for planted in _PLANTED}) >= 12


@pytest.mark.parametrize("planted", _PLANTED, ids=lambda planted: f"{planted.file.stem}-{planted.name}")
def test_a_planted_race_is_found_with_its_lines(planted: _Planted, build_folder: Path) -> None:
    found = _findings(planted.file, planted.name, build_folder)
    assert found
    for message in found:
        lines = re.findall(r" (?:at \w+\.cu:|line )(\d+)", message)
        assert lines and {int(line) for line in lines} <= planted.lines, message


@pytest.mark.parametrize("planted", _PLANTED, ids=lambda planted: f"{planted.file.stem}-{planted.name}")
def test_the_honest_twin_is_not_accused(planted: _Planted, build_folder: Path) -> None:
    assert _findings(planted.file, f"{planted.name}_fixed", build_folder) == []


@pytest.mark.parametrize("name", ["observer_fences", "readers_fence", "observer_fences_too_early", "observer_loads"])
def test_a_race_that_only_the_readers_fence_would_end_is_a_note(name: str, build_folder: Path) -> None:
    found = _findings(_FOLDER / "passed_fences.cu", name, build_folder)
    assert all(re.match("note: .*, only a fence after an atomic can order them$", message) for message in found)


@pytest.mark.parametrize("name", ["all_fence", "one_fences", "no_meeting", "fences_of_blocks"])
def test_a_race_that_lacks_the_writers_fence_is_wrong(name: str, build_folder: Path) -> None:
    found = _findings(_FOLDER / "passed_fences.cu", name, build_folder)
    assert any(not message.startswith("note") for message in found)


@pytest.mark.parametrize("name", ["equal_tiles", "equal_flag", "equal_tree"])
def test_a_missing_barrier_is_wrong_where_the_bytes_are_equal(name: str, build_folder: Path) -> None:
    found = _findings(_FOLDER / "grades.cu", name, build_folder)
    assert found and not any(message.startswith("note") for message in found)


def test_one_value_that_all_threads_write_and_use_is_a_note(build_folder: Path) -> None:
    found = _findings(_FOLDER / "grades.cu", "own_value", build_folder)
    assert all(message.startswith("note") for message in found)


def test_an_access_out_of_bounds_names_the_array(build_folder: Path) -> None:
    (first, _) = _findings(_FOLDER / "bounds.cu", "write_past", build_folder)
    assert "thread (37, 0, 0) at bounds.cu:" in first
    assert first.endswith(": a write 0 bytes past the end of `out` (global), which has 148 bytes")


@pytest.mark.parametrize(("file", "name", "said"), [
    ("atomic_sizes", "half_of_a_counter", "they are atomics of different sizes"),
    ("lost_updates", "volatile_increment", "so an update can be lost"),
    ("lost_updates", "load_then_exchange", "so an update can be lost"),
    ("missing_lanes", "outside_the_mask", "in which it takes no part"),
])
def test_what_the_hardware_forgives_or_a_kernel_may_discard_is_a_note(
    file: str, name: str, said: str, build_folder: Path
) -> None:
    found = _findings(_FOLDER / f"{file}.cu", name, build_folder)
    assert all(message.startswith("note") and message.endswith(said) for message in found)


@pytest.mark.parametrize("name", ["through_memory", "in_ptx", "counter"])
def test_a_read_only_load_of_what_the_launch_wrote_is_wrong(name: str, build_folder: Path) -> None:
    found = _findings(_FOLDER / "read_only_loads.cu", name, build_folder)
    assert all("but a read-only load requires" in message and not message.startswith("note") for message in found)
