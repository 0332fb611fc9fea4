"""The private copy of a solution's folder: what is copied, what is linked, and the paths in messages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inlinebench.candidate import files as module
from inlinebench.candidate.files import Files
from inlinebench.sandbox import given
from inlinebench.sandbox.given import readable_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "solutions" / "p"
    (folder / "sub").mkdir(parents=True)
    (folder / "fast.py").write_text("fast")
    (folder / "sub" / "kernel.cu").write_text("kernel")
    for left_out in ("__pycache__", ".git", "sub/site-packages"):
        (folder / left_out).mkdir()
        (folder / left_out / "file").write_text("")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "scratch").mkdir()
    return Files(tmp_path / "scratch")


def copied(files: Files, folder: Path) -> Path:
    return files.copy(folder / "fast.py", [folder / "fast.py", folder]).parent


def test_the_whole_folder_is_copied(files: Files, folder: Path) -> None:
    own = copied(files, folder)
    assert {str(path.relative_to(own)) for path in own.rglob("*")} == {"fast.py", "sub", "sub/kernel.cu"}
    assert not any(path.is_symlink() for path in own.rglob("*"))
    assert own.is_relative_to(files.scratch) and str(own).endswith(str(folder))


def test_files_of_the_folder_its_copy_and_the_scratch_folder_belong_to_the_solution(
    files: Files, folder: Path
) -> None:
    own = copied(files, folder)
    (folder.parent / "link").symlink_to(folder)
    for path in (own / "fast.py", folder / "sub" / "a.py", files.scratch / "new.so", folder.parent / "link" / "a.py"):
        assert files.belongs(path)
    for path in (folder.parent / "q" / "fast.py", Path("/usr/lib/libcublas.so"), folder / "site-packages" / "a.py"):
        assert not files.belongs(path)


def test_the_copy_of_a_read_only_file_is_writable(files: Files, folder: Path) -> None:
    (folder / "sub" / "kernel.cu").chmod(0o444)
    own = copied(files, folder)
    assert os.stat(own / "sub" / "kernel.cu").st_mode & 0o777 == 0o644


@pytest.mark.parametrize("linked", [False, True])
def test_a_replaced_text_is_in_the_copy_only(
    files: Files, folder: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    if linked:
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    own = copied(files, folder)
    assert (own / "fast.py").is_symlink() is linked
    assert files.write(own / "fast.py", "other") == own / "fast.py"
    assert (own / "fast.py").read_text() == "other" and (folder / "fast.py").read_text() == "fast"


def test_a_replaced_text_is_python_whatever_the_file_was(files: Files, folder: Path) -> None:
    (folder / "definition.json").write_text("{}")
    own = files.copy(folder / "definition.json", [folder / "definition.json"])
    assert files.write(own, "x = 1") == own.with_suffix(".py") and not own.exists()


def test_a_file_without_its_folder_is_copied_alone(files: Files, folder: Path) -> None:
    own = files.copy(folder / "fast.py", [folder / "fast.py"])
    assert [path.name for path in own.parent.iterdir()] == ["fast.py"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_COPIES", 4), ("MOST_BYTES", 5)])
def test_files_beyond_the_limits_are_linked_but_never_the_solution_itself(
    files: Files, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    for number in range(4):
        (folder / f"a{number}").write_text("data")
    monkeypatch.setattr(module, limit, value)
    own = copied(files, folder)
    assert not (own / "fast.py").is_symlink() and (own / "a3").is_symlink()
    assert (own / "a3").read_text() == "data" and (own / "sub" / "kernel.cu").read_text() == "kernel"


def test_the_number_of_entries_of_a_folder_is_limited(
    files: Files, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (folder / f"a{number}").write_text("data")
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    own = copied(files, folder)
    assert (own / "fast.py").read_text() == "fast" and len(list(own.iterdir())) <= 10


def test_links_keep_their_targets(files: Files, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    (folder / "to_folder").symlink_to("../../outside")
    (folder / "to_file").symlink_to("../../outside/file")
    (folder / "to_nothing").symlink_to("nothing")
    (folder / "endless").symlink_to(".")
    own = copied(files, folder)
    assert (own / "to_folder" / "file").read_text() == (own / "to_file").read_text() == "outside"
    (own / "to_file").write_text("changed")
    assert (tmp_path / "outside" / "file").read_text() == "outside"
    assert not (own / "to_nothing").exists() and (own / "endless").is_symlink()


def test_files_next_to_the_folder_are_not_in_the_copy_but_a_link_to_them_is(files: Files, folder: Path) -> None:
    (folder.parent / "shared.cuh").write_text("shared")
    (folder / "linked.cuh").symlink_to("../shared.cuh")
    own = copied(files, folder)
    assert not (own / ".." / "shared.cuh").exists() and (own / "linked.cuh").read_text() == "shared"


def test_the_copy_has_the_files_that_are_given(files: Files, folder: Path, tmp_path: Path) -> None:
    """The key contains what `given` lists, so the copy must not have more."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    (folder / "to_folder").symlink_to(tmp_path / "outside")
    (folder / "to_file").symlink_to(tmp_path / "outside" / "file")
    (folder / "to_nothing").symlink_to("nothing")
    (folder / "endless").symlink_to(".")
    paths = readable_for(folder / "fast.py")
    own = files.copy(paths[0], paths).parent
    names = {name or "fast.py" for name, _ in given.files(paths)}
    assert names == {"fast.py", "sub/kernel.cu", "to_folder/file", "to_file", "to_nothing", "endless"}
    there = {str(path.relative_to(own)) for path in own.rglob("*") if not path.is_dir() or path.name == "endless"}
    assert there | {"to_folder/file"} == names and (own / "to_folder" / "file").read_text() == "outside"


def test_the_common_folder_is_copied_to_where_the_solution_finds_it(files: Files, folder: Path) -> None:
    (folder.parent / "common").mkdir()
    (folder.parent / "common" / "sum.cuh").write_text("shared")
    (folder.parent / "other").mkdir()
    paths = readable_for(folder / "fast.py")
    own = files.copy(paths[0], paths)
    assert (own.parents[1] / "common" / "sum.cuh").read_text() == "shared"
    assert not (own.parents[1] / "other").exists()
    assert {name for name, _ in given.files(paths)} == {"", "sub/kernel.cu", "../common/sum.cuh"}
    (own.parents[1] / "common" / "sum.cuh").write_text("changed")
    assert (folder.parent / "common" / "sum.cuh").read_text() == "shared"


def test_a_missing_solution_fails_when_it_is_read(files: Files, folder: Path) -> None:
    (folder / "fast.py").unlink()
    with pytest.raises(FileNotFoundError):
        (copied(files, folder) / "fast.py").read_text()


def test_paths_of_copies_are_replaced_by_the_author_s_paths(files: Files, folder: Path) -> None:
    own = copied(files, folder)
    assert files.by_author(f"error in {own}/fast.py, line 3") == f"error in {folder}/fast.py, line 3"
    assert files.relative(own / "x.h") == str(folder / "x.h")[1:]
    assert files.relative(files.scratch / "x.h") == "x.h" and files.relative(Path("/usr/x.h")) is None
