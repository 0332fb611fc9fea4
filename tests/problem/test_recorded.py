"""Recorded inputs: tensors are read as they were written, and every fault of a file is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.problem.recorded import RecordedInputError, RecordedInputMissing, recorded

from ..traces.files import write_safetensors

TENSORS = {
    "indices": torch.tensor([[3, -1, 2]], dtype=torch.int32), "halves": torch.tensor([0.5, -2.0], dtype=torch.bfloat16),
    "small": torch.tensor([1.5, -0.25]).to(torch.float8_e4m3fn), "mask": torch.tensor([True, False]),
    "scalar": torch.tensor(7, dtype=torch.int64), "empty": torch.empty((0, 3)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_safetensors(tmp_path / "blob" / "own.safetensors", TENSORS)
    return tmp_path


def read(folder: Path, key: str, shape: tuple[int, ...], dtype: torch.dtype, file: str = "own") -> torch.Tensor:
    return recorded(str(folder / "definitions" / "x.json"), (f"blob/{file}.safetensors", key), shape, dtype)


@pytest.mark.parametrize("key", TENSORS)
def test_a_tensor_is_read_as_it_was_written(folder: Path, key: str) -> None:
    tensor = TENSORS[key]
    found = read(folder, key, tuple(tensor.shape), tensor.dtype)
    assert found.dtype is tensor.dtype and found.shape == tensor.shape
    assert torch.equal(found.double(), tensor.double())


@pytest.mark.parametrize(("shape", "dtype", "said"), [
    ((3, 1), torch.int32, r"indices is (1, 3) of torch.int32; its definition has (3, 1) of torch.int32 at these sizes"),
    ((1, 3), torch.int64, r"its definition has (1, 3) of torch.int64"),
])
def test_another_shape_or_dtype_is_an_error(
    folder: Path, shape: tuple[int, ...], dtype: torch.dtype, said: str
) -> None:
    with pytest.raises(RecordedInputError) as caught:
        read(folder, "indices", shape, dtype)
    assert said in str(caught.value) and str(folder / "blob" / "own.safetensors") in str(caught.value)


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(RecordedInputMissing, match=r"recorded input blob/other\.safetensors is not on this machine"):
        read(folder, "indices", (1, 3), torch.int32, "other")


@pytest.mark.parametrize(("content", "said"), [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "this is a pointer of Git LFS"),
    (b"", "no readable tensor 'a'"), (b"\xff" * 40, "no readable tensor 'a'"),
    (b"\x02" + bytes(7) + b"[]", "no readable tensor 'a'"), (b"\x02" + bytes(7) + b"{}", "no readable tensor 'a'"),
])
def test_a_file_of_another_format_is_an_error(folder: Path, content: bytes, said: str) -> None:
    (folder / "blob" / "other.safetensors").write_bytes(content)
    with pytest.raises(RecordedInputError, match=said):
        read(folder, "a", (1,), torch.int32, "other")


def test_a_file_that_ends_early_is_an_error(folder: Path) -> None:
    path = folder / "blob" / "own.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 9])
    with pytest.raises(RecordedInputError, match="too few or too many for"):
        read(folder, "scalar", (), torch.int64)
