from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from inlinebench.compile.cache import FACTS, Cache
from inlinebench.errors import UsageError

KEY = "ab" * 32


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def build(cache: Cache, content: bytes = b"library", key: str = KEY) -> Path:
    with cache.workshop() as folder:
        library = folder / "name.so"
        library.write_bytes(content)
        return cache.store(key, library)


def test_a_stored_library_is_found(cache: Cache) -> None:
    assert cache.find(KEY) is None
    stored = build(cache)
    assert stored.name == "name.so" and stored.read_bytes() == b"library"
    assert cache.find(KEY) == stored
    assert cache.find("cd" * 32) is None


def test_a_damaged_library_is_not_found_and_can_be_replaced(cache: Cache) -> None:
    build(cache).write_bytes(b"damaged")
    assert cache.find(KEY) is None
    assert build(cache).read_bytes() == b"library"
    assert cache.find(KEY) is not None


@pytest.mark.parametrize("facts", ["", "{}", "[]", "null", '{"library": "name.so", "sha256": 1}', "\xff"])
def test_an_entry_with_damaged_facts_can_be_replaced(cache: Cache, facts: str) -> None:
    (build(cache).parent / FACTS).write_text(facts)
    assert cache.find(KEY) is None
    build(cache)
    assert cache.find(KEY) is not None


@pytest.mark.parametrize("missing", [FACTS, "name.so"])
def test_an_entry_with_a_missing_file_can_be_replaced(cache: Cache, missing: str) -> None:
    (build(cache).parent / missing).unlink()
    assert cache.find(KEY) is None
    assert build(cache).exists()
    assert cache.find(KEY) is not None


def test_storing_a_key_again_keeps_the_first_library(cache: Cache) -> None:
    first = build(cache, b"first")
    assert build(cache, b"second") == first
    assert first.read_bytes() == b"first"


def test_several_threads_can_store_the_same_key_at_once(cache: Cache) -> None:
    found: list[Path] = []
    threads = [Thread(target=lambda: found.append(build(cache, b"x" * 100_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_no_temporary_files_are_left_beside_the_entries(cache: Cache, tmp_path: Path) -> None:
    build(cache, b"first")
    build(cache, b"second")
    with pytest.raises(ZeroDivisionError), cache.workshop() as folder:
        (folder / "rest").write_text("")
        raise ZeroDivisionError
    assert os.listdir(tmp_path / "cache") == [KEY[:2]]


def test_an_interrupted_store_leaves_no_entry(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(cache)
    assert cache.find(KEY) is None


def test_a_folder_that_cannot_be_written_raises_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another folder with --cache"):
        Cache(tmp_path / "file" / "cache")
