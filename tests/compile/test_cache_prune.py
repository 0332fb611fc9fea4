"""Pruning and clearing a cache, also while other processes use it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compile.cache import Cache, contents
from inlinebench.compile.cache.contents import Item
from inlinebench.compile.cache.prune import IN_USE_S, LEFT_S, clear, least_recently_used, prune, take_away

ROOT = Path(__file__).resolve().parent.parent.parent
NOW = 1e9
SIZE = 1000


def key_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def store(cache: Cache, name: str, size: int = SIZE, age: float = 0.0) -> Path:
    """Stores a library of `size` bytes that was last used `age` seconds ago, and returns its entry."""
    with cache.workshop() as folder:
        (folder / "name.so").write_bytes(b"x" * size)
        entry = cache.store(key_of(name), folder / "name.so").parent
    return grown_old(entry, age)


def grown_old(path: Path, age: float = 2 * LEFT_S) -> Path:
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def names(cache: Cache, known: str) -> str:
    """Returns the names of existing entries, without marking them as used."""
    return "".join(name for name in known if (cache.folder / key_of(name)[:2] / key_of(name)).exists())


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    cache = Cache(tmp_path / "cache")
    yield cache
    cache.close()


_ages = st.floats(-10 * IN_USE_S, 100 * IN_USE_S)
_items = st.lists(st.tuples(st.integers(0, 100), _ages), max_size=20).map(
    lambda facts: [Item(Path(str(index)), size, NOW - age) for index, (size, age) in enumerate(facts)])


@given(_items, st.integers(0, 1000), st.integers(0, 20))
def test_the_least_recently_used_items_go_first_and_no_more_than_necessary(
    items: list[Item], limit: int, kept: int
) -> None:
    keep = Path(str(kept))
    gone = least_recently_used(items, limit, NOW, keep)
    may_go = [item for item in items if item.path != keep and abs(NOW - item.used) >= IN_USE_S]
    stay = [item for item in may_go if item not in gone]
    assert all(item in may_go for item in gone)
    assert [item.used for item in gone] == sorted(item.used for item in gone)
    assert all(one.used <= other.used for one in gone for other in stay)
    left = sum(item.size for item in items) - sum(item.size for item in gone)
    assert left <= limit or not stay
    assert not gone or left + gone[-1].size > limit


def test_storing_prunes_and_using_an_entry_keeps_it(tmp_path: Path) -> None:
    unlimited = Cache(tmp_path)
    for age, name in enumerate("dcba", start=2):
        store(unlimited, name, age=age * IN_USE_S)
    assert unlimited.find(key_of("a")) is not None  # the oldest, and now the newest
    limited = Cache(tmp_path, limit=3.5 * SIZE)
    store(limited, "e")
    assert names(limited, "abcde") == "ade"


def test_entries_used_in_the_last_hour_are_kept_whatever_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=0)
    for name in "ab":
        store(cache, name, size=10 * SIZE)
    store(cache, "c", age=IN_USE_S + 60)
    assert names(cache, "abc") == "abc"
    assert prune(cache.folder, 0).libraries == 1
    assert names(cache, "abc") == "ab"


def test_a_new_entry_is_kept_even_if_clocks_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, later = Cache(tmp_path, limit=0), time.time() + 10 * IN_USE_S
    monkeypatch.setattr(time, "time", lambda: later)
    store(cache, "a", age=10 * IN_USE_S)  # marked by the file system's clock
    assert names(cache, "a") == "a"
    assert prune(cache.folder, 0).libraries == 1


def test_a_library_that_cannot_be_marked_is_found(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    library = store(cache, "a") / "name.so"

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.find(key_of("a")) == library


def test_a_held_library_is_kept_until_it_is_released(cache: Cache) -> None:
    entry = store(cache, "a")
    assert cache.hold(entry / "name.so") and cache.hold(entry / "name.so")
    assert not cache.hold(entry.with_name("missing") / "name.so")
    grown_old(entry)
    assert prune(cache.folder, 0).libraries == 0
    cache.close()
    assert prune(cache.folder, 0).libraries == 1


def test_an_entry_that_is_used_while_it_is_removed_is_put_back(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = store(cache, "a", age=2 * IN_USE_S)
    rename = Path.rename

    def use_first(path: Path, target: Path) -> Path:
        if path == entry:
            os.utime(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", use_first)
    assert prune(cache.folder, 0).libraries == 0
    assert names(cache, "a") == "a"


def test_an_entry_that_was_replaced_while_it_was_removed_is_not_put_back(cache: Cache) -> None:
    entry = store(cache, "a")

    def replaced(moved: Path) -> bool:
        assert not entry.exists() and (moved / "name.so").exists()
        store(cache, "a")
        return False

    assert take_away(entry, replaced)
    assert cache.find(key_of("a")) is not None
    assert contents.leftovers(cache.folder) == []


def test_an_open_library_stays_readable_after_pruning(cache: Cache) -> None:
    entry = store(cache, "a", age=2 * IN_USE_S)
    with (entry / "name.so").open("rb") as file:
        assert prune(cache.folder, 0).libraries == 1 and not entry.exists()
        assert file.read() == b"x" * SIZE


def test_leftovers_of_killed_processes_are_removed_after_a_day(cache: Cache) -> None:
    place = cache.folder
    room = cache.room(contents.CPU_LIBRARIES)
    cache.remember(key_of("note"), [])
    left = [place / "building-a1b2c3d4", place / "entry-a_b2c3d4", room / "tmpa1b2c3d4",
            place / "bytecode"]
    for folder in left:
        folder.mkdir()
        (folder / "main.o").write_bytes(b"x" * SIZE)
    left.append(place / contents.NOTES / "tmpa1b2c3d4")
    left[-1].write_text("")
    assert prune(place, 0).leftovers == 0
    for path in left:
        grown_old(path)
    with cache.workshop() as fresh:
        removed = prune(place, 0)
        assert fresh.exists()
    assert (removed.leftovers, removed.size) == (5, 4 * SIZE)
    assert not any(path.exists() for path in left)


def test_the_age_of_a_renamed_item_starts_with_the_renaming(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = store(cache, "a", age=2 * LEFT_S)
    entry.rename(entry.with_name("gone-a1b2c3d4"))
    assert prune(cache.folder, 0).leftovers == 0  # the renaming process may be about to put it back
    later = time.time() + LEFT_S + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert prune(cache.folder, 0).leftovers == 1


def test_only_entries_are_pruned_in_a_folder_with_foreign_files(cache: Cache) -> None:
    store(cache, "a", age=2 * IN_USE_S)
    (cache.folder / "notes.txt").write_text("")
    looks_alike = cache.folder / "building-material"
    looks_alike.mkdir()
    grown_old(looks_alike)
    assert prune(cache.folder, 0).libraries == 1
    assert looks_alike.exists()


def test_a_folder_without_facts_is_not_an_entry(cache: Cache) -> None:
    blob = cache.folder / "ab" / ("ab" * 32)
    blob.mkdir(parents=True)
    (blob / "data").write_bytes(b"x" * SIZE)
    grown_old(blob)
    prune(cache.folder, 0)
    clear(cache.folder)
    assert (blob / "data").exists()


def test_notes_are_removed_with_their_libraries(cache: Cache) -> None:
    for name in "ab":
        cache.remember(key_of(name), [store(cache, name, age=2 * IN_USE_S) / "name.so"])
    (cache.folder / contents.NOTES / key_of("damaged")).write_text("{")
    cache.find(key_of("b"))
    removed = prune(cache.folder, 0)
    assert (removed.libraries, removed.notes) == (1, 2)
    assert not cache.recalls(key_of("a")) and cache.recalls(key_of("b"))


def test_runtime_libraries_are_pruned_but_peaks_are_not(cache: Cache) -> None:
    room = cache.room(contents.CPU_LIBRARIES)
    old, used = room / "libold.so", room / "libused.so"
    peaks = cache.folder / contents.PEAKS / "gpu.json"
    peaks.parent.mkdir()
    for path in (old, used, peaks):
        path.write_bytes(b"x" * SIZE)
        grown_old(path)
    assert cache.hold(used)
    removed = prune(cache.folder, 0)
    assert (removed.libraries, removed.peaks) == (1, 0)
    assert not old.exists() and used.exists() and peaks.exists()


def test_clear_keeps_only_items_that_runs_may_need(cache: Cache) -> None:
    cache.remember(key_of("note"), [store(cache, "a") / "name.so"])
    (cache.room(contents.CPU_LIBRARIES) / "lib.so").write_text("")
    (cache.folder / contents.PEAKS).mkdir()
    (cache.folder / contents.PEAKS / "gpu.json").write_text("{}")
    old = cache.folder / "building-a1b2c3d4"
    old.mkdir()
    grown_old(old, age=2 * IN_USE_S)
    assert cache.hold(store(cache, "held") / "name.so")
    with cache.workshop() as folder:
        removed = clear(cache.folder)
        assert (removed.libraries, removed.notes, removed.peaks, removed.leftovers) == (2, 1, 1, 1)
        assert contents.leftovers(cache.folder)[0].path == folder
    assert names(cache, "a") == ""
    cache.close()
    assert clear(cache.folder).libraries == 1
    assert sorted(os.listdir(cache.folder)) == ["built", "cuda_on_cpu", "peaks"]
    assert store(cache, "a").exists()


START = """\
import os, random, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from inlinebench.compile.cache import Cache
from inlinebench.compile.cache.prune import clear, prune
"""
READ = """\
cache, keys, found = Cache(Path(sys.argv[1])), sys.argv[3].split(), []
random.shuffle(keys)
for key in keys:
    library = cache.find(key)
    if library is not None:
        assert library.read_bytes() == b"x" * 1000
        found.append(library)
    time.sleep(0.001)
assert all(library.exists() for library in found)
print(len(found))
"""
PRUNE = """\
place, total = Path(sys.argv[1]), 0
for step in range(int(sys.argv[3]), -1, -1):
    total += prune(place, step * 1000).libraries
print(total)
"""
WRITE = """\
cache = Cache(Path(sys.argv[1]), limit=5000)
for number in range(30):
    for key in sys.argv[3].split():
        with cache.workshop() as folder:
            (folder / "name.so").write_bytes(os.urandom(1000))
            library = cache.store(key, folder / "name.so")
        assert len(library.read_bytes()) == 1000
print(number)
"""
CLEAR = """\
for _ in range(100):
    clear(Path(sys.argv[1]))
"""
DAMAGE = """\
for _ in range(500):
    try:
        for facts in Path(sys.argv[1]).glob("*/*/facts.json"):
            facts.write_text("{")
    except FileNotFoundError:
        pass
"""


def together(place: Path, *programs: tuple[str, str]) -> list[str]:
    """Runs programs on a cache at the same time, and returns their outputs."""
    running = [
        subprocess.Popen([sys.executable, "-c", START + text, str(place), str(ROOT / "harness"), argument],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for text, argument in programs]
    outputs = [process.communicate(timeout=100) for process in running]
    assert [errors for _, errors in outputs] == [""] * len(running)
    return [out.strip() for out, _ in outputs]


@pytest.mark.slow
def test_libraries_that_were_found_stay_while_other_processes_prune(cache: Cache) -> None:
    known = [f"entry {number}" for number in range(150)]
    for name in known:
        store(cache, name, age=2 * IN_USE_S)
    keys = " ".join(map(key_of, known))
    read, also_read, one, other = map(int, together(
        cache.folder, (READ, keys), (READ, keys), (PRUNE, "150"), (PRUNE, "150")))
    left = len(contents.entries(cache.folder))
    assert one + other == len(known) - left, "each entry was removed once, or kept"
    assert max(read, also_read) <= left <= read + also_read
    assert contents.leftovers(cache.folder) == []


@pytest.mark.slow
def test_several_processes_can_store_the_same_keys_at_once(cache: Cache) -> None:
    keys = " ".join(map(key_of, "abcdefgh"))
    assert together(cache.folder, *[(WRITE, keys)] * 4) == ["29"] * 4
    assert len(contents.entries(cache.folder)) == 8 and contents.leftovers(cache.folder) == []


def test_an_entry_that_was_rebuilt_before_its_damaged_version_was_removed_is_kept(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = store(cache, "a") / contents.FACTS
    whole = facts.read_text()
    facts.write_text("{")
    rename = Path.rename

    def rebuild_first(path: Path, target: Path) -> Path:
        if path == facts.parent:
            facts.write_text(whole)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rebuild_first)
    assert cache.find(key_of("a")) is None
    assert cache.find(key_of("a")) is not None


def test_storing_works_while_other_processes_damage_and_clear(cache: Cache) -> None:
    write = WRITE.replace("assert len(library.read_bytes()) == 1000", "pass")
    together(cache.folder, (write, key_of("a")), (write, key_of("a")), (DAMAGE, ""), (CLEAR, ""))
    assert store(cache, "a").exists() and cache.find(key_of("a")) is not None
