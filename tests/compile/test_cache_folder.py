"""The ownership of files in a cache. Most tests need root, which can change the owner of files."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inlinebench.compile.cache import FACTS, Cache
from inlinebench.compile.cache.folder import is_closed, is_own
from inlinebench.errors import UsageError

KEY, OTHER_KEY = "ab" * 32, "cd" * 32
USER, STRANGER = 12345, 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def store(cache: Cache, content: bytes = b"library") -> Path:
    with cache.workshop() as folder:
        (folder / "name.so").write_bytes(content)
        return cache.store(KEY, folder / "name.so")


def as_user(user: int, act: Callable[[], object]) -> None:
    """Runs `act` in a process of this user."""
    def run() -> None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        act()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == 0


def give(path: Path, user: int = STRANGER) -> None:
    os.chown(path, user, user)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of root's in which every user may make files, and remove only its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        folder.mkdir()
        Path(name).chmod(0o755)
        folder.chmod(0o1777)
        yield folder


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_new_files_are_not_writable_by_others_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        cache = Cache(tmp_path / "new" / "cache")
        library = store(cache)
        cache.room("room")
    finally:
        os.umask(before)
    assert is_closed(cache.folder)
    assert all(map(is_own, [library, library.parent, library.parent.parent, library.parent / FACTS]))
    assert Cache(cache.folder).find(KEY) == library


def test_the_users_own_folder_with_a_safe_mode_is_used_directly(tmp_path: Path) -> None:
    for mode in (0o755, 0o750, 0o700, 0o1755, 0o2755):
        tmp_path.chmod(mode)
        assert Cache(tmp_path).folder == tmp_path
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    (tmp_path / "disk").mkdir(mode=0o755)
    assert store(Cache(tmp_path / "link")).exists()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o2775])
def test_a_folder_whose_files_others_can_replace_raises(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(UsageError, match=r"chmod go-w.*--cache"):
        Cache(tmp_path)


def test_each_user_has_a_subfolder_in_a_sticky_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    cache = Cache(tmp_path)
    assert cache.folder == tmp_path / f"inlinebench-{os.geteuid()}"
    library = store(cache)
    assert Cache(tmp_path).find(KEY) == library
    cache.folder.chmod(0o777)
    with pytest.raises(UsageError, match="another user"):
        Cache(tmp_path)


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("part", ["library", "facts", "entry", "shelf"])
def test_an_entry_that_others_may_write_is_built_again(tmp_path: Path, mode: int, part: str) -> None:
    cache = Cache(tmp_path / "cache")
    library = store(cache, b"planted")
    parts = {"library": library, "facts": library.parent / FACTS, "entry": library.parent,
             "shelf": library.parent.parent}
    parts[part].chmod(mode)
    assert cache.find(KEY) is None
    assert store(cache, b"ours").read_bytes() == b"ours"
    assert cache.find(KEY) == library


@pytest.mark.parametrize("part", ["library", "entry", "shelf"])
def test_links_in_the_cache_are_not_followed(tmp_path: Path, part: str) -> None:
    cache = Cache(tmp_path / "cache")
    library = store(cache, b"planted")
    path = {"library": library, "entry": library.parent, "shelf": library.parent.parent}[part]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.find(KEY) is None
    assert store(cache, b"ours").read_bytes() == b"ours"
    assert (tmp_path / "elsewhere").exists()


def test_a_library_outside_of_its_entry_is_not_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    library = store(cache)
    facts = library.parent / FACTS
    os.replace(library, tmp_path / "name.so")
    facts.write_text(facts.read_text().replace('"name.so"', '"../../../name.so"'))
    assert cache.find(KEY) is None


def test_a_stored_library_is_a_copy_of_a_regular_file(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    with cache.workshop() as folder:
        library = folder / "name.so"
        library.write_bytes(b"library")
        with library.open("r+b") as still_open:
            stored = cache.store(KEY, library)
            still_open.write(b"changed")
        assert stored.read_bytes() == b"library" and cache.find(KEY) == stored
        (folder / "link.so").symlink_to(library)
        with pytest.raises(OSError, match="symbolic link"):
            cache.store(OTHER_KEY, folder / "link.so")
    assert os.listdir(cache.folder) == [KEY[:2]]


def test_a_private_folder_is_emptied_if_others_may_have_written_to_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    room = cache.room("room")
    (room / "lib.so").write_text("ours")
    (room / "lib.so").chmod(0o775)  # as under another umask; nobody else can enter the folder
    assert os.listdir(cache.room("room")) == ["lib.so"]
    room.chmod(0o755)
    assert os.listdir(cache.room("room")) == [], "another user may have written to it"
    (room / "lib.so").write_text("ours")
    room.chmod(0o755)
    assert os.listdir(cache.room("room")) == ["lib.so"] and is_closed(room)
    room.chmod(0o777)
    assert os.listdir(cache.room("room")) == [] and is_closed(room)


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777, 0o1777])
def test_a_folder_of_another_user_raises(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    give(tmp_path)
    with pytest.raises(UsageError, match=rf"belongs to user {STRANGER}.*--cache"):
        Cache(tmp_path)


@as_root
@pytest.mark.parametrize("part", ["library", "facts", "entry", "shelf"])
def test_an_entry_of_another_user_is_built_again(tmp_path: Path, part: str) -> None:
    cache = Cache(tmp_path / "cache")
    library = store(cache, b"planted")
    give({"library": library, "facts": library.parent / FACTS, "entry": library.parent,
          "shelf": library.parent.parent}[part])
    assert cache.find(KEY) is None
    assert store(cache, b"ours").read_bytes() == b"ours"
    assert cache.find(KEY) == library


@as_root
def test_users_can_share_a_folder_but_share_no_code(shared: Path) -> None:
    ours = store(Cache(shared), b"root's")

    def work() -> None:
        cache = Cache(shared)
        assert cache.find(KEY) is None
        assert store(cache, b"the user's").read_bytes() == b"the user's"
        assert cache.folder == shared / f"inlinebench-{USER}"

    as_user(USER, work)
    assert Cache(shared).find(KEY) == ours and ours.read_bytes() == b"root's"


@as_root
def test_a_subfolder_that_another_user_created_raises(shared: Path) -> None:
    as_user(STRANGER, (shared / f"inlinebench-{USER}").mkdir)
    as_user(STRANGER, (shared / "elsewhere").mkdir)
    as_user(STRANGER, lambda: (shared / "inlinebench-0").symlink_to(shared / "elsewhere"))

    def work() -> None:
        with pytest.raises(UsageError, match="another user has created"):
            Cache(shared)

    work()
    as_user(USER, work)


@as_root
def test_entries_of_root_are_used_and_entries_of_others_are_replaced(shared: Path) -> None:
    place = shared / f"inlinebench-{USER}"
    as_user(USER, lambda: Cache(shared).room("room").chmod(0o700))
    library = place / KEY[:2] / KEY / "name.so"
    as_user(USER, lambda: store(Cache(shared), b"the user's").chmod(0o644))
    for path in (library, library.parent, library.parent.parent, library.parent / FACTS):
        os.chown(path, 0, 0)
        path.chmod(0o755)

    def load() -> None:
        assert Cache(shared).find(KEY) == library

    def replace() -> None:
        cache = Cache(shared)
        assert cache.find(KEY) is None
        assert store(cache, b"anew").read_bytes() == b"anew"

    as_user(USER, load)
    for foreign in (library.parent.parent, library.parent):
        give(library.parent.parent, USER)
        give(foreign)
        as_user(USER, replace)
        as_user(USER, load)


@as_root
def test_a_read_only_folder_of_root_raises(shared: Path) -> None:
    shared.chmod(0o755)

    def work() -> None:
        with pytest.raises(UsageError, match="cannot write the cache"):
            Cache(shared)

    as_user(USER, work)
