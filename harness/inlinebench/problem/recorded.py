"""Reads recorded inputs from safetensors files: the length of a header, the header as JSON, and the tensors' bytes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

from inlinebench.catalog.traces.layout import recorded_file

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64, "I32": torch.int32,
           "I16": torch.int16, "I8": torch.int8, "BOOL": torch.bool}
_POINTER = b"version https://git-lfs"
_LONGEST_HEADER = 100 << 20


class RecordedInputError(Exception):
    """A recorded input differs from its definition, or cannot be read. The message names the file."""


class RecordedInputMissing(RecordedInputError):
    """The file of a recorded input is not on this machine. The message says what to do."""


def recorded(definition: str, source: tuple[str, str], shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Returns a recorded input of a definition, on the CPU.

    Args:
        definition: the path of the definition's file.
        source: the path of the safetensors file, as the workload has it, and the name of the tensor.
        shape: the shape that the definition has at this workload.
        dtype: its dtype.

    Raises RecordedInputMissing if the file is not there, and RecordedInputError if it has no such tensor.
    """
    name, key = source
    path = recorded_file(Path(definition), name)
    if path is None:
        raise RecordedInputMissing(f"the recorded input {name} is not on this machine; download it with its set")
    found = _read(path, key)
    if found.shape != shape or found.dtype != dtype:
        raise RecordedInputError(f"{path}: {key} is {tuple(found.shape)} of {found.dtype}; its definition has "
                                 f"{shape} of {dtype} at these sizes")
    return found


def _read(path: Path, key: str) -> torch.Tensor:
    with path.open("rb") as file:
        start = file.read(len(_POINTER))
        if start == _POINTER:
            raise RecordedInputMissing(f"{path}: this is a pointer of Git LFS; download the file with git lfs pull")
        length = int.from_bytes(start[:8], "little")
        file.seek(8)
        try:
            facts = json.loads(file.read(min(length, _LONGEST_HEADER)))[key]
            dtype, shape, (begin, end) = _DTYPES[facts["dtype"]], tuple(facts["shape"]), facts["data_offsets"]
        except (ValueError, TypeError, KeyError) as error:
            raise RecordedInputError(f"{path}: no readable tensor {key!r} ({error!r})") from None
        file.seek(8 + length + begin)
        data = bytearray(file.read(end - begin))
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise RecordedInputError(f"{path}: {key} has {len(data)} bytes, too few or too many for {shape} of {dtype}")
    return torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)
