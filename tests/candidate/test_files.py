"""The private copy of a solution's folder: what is copied, what is linked, and what files are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inlinebench.candidate import files as module
from inlinebench.candidate.files import Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "solutions" / "p"
    (place / "sub").mkdir(parents=True)
    (place / "fast.py").write_text("fast")
    (place / "sub" / "kernel.cu").write_text("kernel")
    (place / "__pycache__").mkdir()
    return place


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "scratch").mkdir()
    return Files(tmp_path / "scratch")


def copied(files: Files, folder: Path) -> Path:
    return files.copy(folder / "fast.py", [folder / "fast.py", folder]).parent


def test_everything_below_the_folder_is_copied(files: Files, folder: Path) -> None:
    own = copied(files, folder)
    assert {str(path.relative_to(own)) for path in own.rglob("*")} == {"fast.py", "sub", "sub/kernel.cu"}
    assert not any(path.is_symlink() for path in own.rglob("*"))
    assert own.is_relative_to(files.scratch) and str(own).endswith(str(folder))


def test_a_copy_can_be_written_where_the_original_can_not(files: Files, folder: Path) -> None:
    (folder / "sub" / "kernel.cu").chmod(0o444)
    own = copied(files, folder)
    assert os.stat(own / "sub" / "kernel.cu").st_mode & 0o777 == 0o644


def test_a_file_without_its_folder_is_copied_alone(files: Files, folder: Path) -> None:
    own = files.copy(folder / "fast.py", [folder / "fast.py"])
    assert [path.name for path in own.parent.iterdir()] == ["fast.py"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_COPIES", 4), ("MOST_BYTES", 5)])
def test_what_is_too_much_is_linked_and_the_solution_itself_never(
    files: Files, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    for number in range(4):
        (folder / f"a{number}").write_text("data")
    monkeypatch.setattr(module, limit, value)
    own = copied(files, folder)
    assert not (own / "fast.py").is_symlink() and (own / "a3").is_symlink()
    assert (own / "a3").read_text() == "data" and (own / "sub" / "kernel.cu").read_text() == "kernel"


def test_a_folder_with_too_many_files_takes_no_longer(
    files: Files, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (folder / f"a{number}").write_text("data")
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    own = copied(files, folder)
    assert (own / "fast.py").read_text() == "fast" and len(list(own.iterdir())) <= 10


def test_links_lead_where_they_led(files: Files, folder: Path, tmp_path: Path) -> None:
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


def test_what_lies_beside_the_folder_can_be_found_from_it(files: Files, folder: Path) -> None:
    (folder.parent / "shared.cuh").write_text("shared")
    assert (copied(files, folder) / ".." / "shared.cuh").read_text() == "shared"


def test_a_solution_that_is_gone_fails_when_it_is_read(files: Files, folder: Path) -> None:
    (folder / "fast.py").unlink()
    with pytest.raises(FileNotFoundError):
        (copied(files, folder) / "fast.py").read_text()


def test_the_author_s_names_take_the_place_of_private_ones(files: Files, folder: Path) -> None:
    own = copied(files, folder)
    assert files.by_author(f"error in {own}/fast.py, line 3") == f"error in {folder}/fast.py, line 3"
    assert files.relative(own / "x.h") == str(folder / "x.h")[1:]
    assert files.relative(files.scratch / "x.h") == "x.h" and files.relative(Path("/usr/x.h")) is None
