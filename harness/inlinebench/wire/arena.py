"""One block of shared memory that the judge owns and the candidate maps: inputs, outputs and states lie in it.

On the CPU it is an anonymous file (memfd) that both processes map. On a GPU it is one `cudaMalloc` of its own, opened
through CUDA IPC: a handle always opens the whole segment, so nothing else of the judge may lie in it, which torch's
caching allocator would not promise. Torch's own reductions count references across processes and would leak one with
every candidate that is killed; the plain runtime calls have nothing to leak.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from inlinebench.wire.memory_file import sealed_file

ALIGNMENT = 512
"""Bytes; what cudaMalloc and torch's allocator give, so that vector loads work as they do elsewhere."""

GPU_PAGE = 2 << 20
"""Bytes. A segment whose size is no multiple of this is mapped with small pages in the process that opens it: on an
H100 a float32 matrix product that reads its input through such a mapping takes 1.4 % longer than in the process that
made the segment, and a reference against itself came out at 0.988."""


@dataclass(frozen=True)
class TensorSpec:
    """Where a tensor lies: dtype name (`float32`), shape, strides in elements, offset into the arena in bytes."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def torch_dtype(self) -> torch.dtype:
        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype

    @property
    def bytes(self) -> int:
        """The extent in memory of a dense tensor."""
        count = 1
        for size in self.shape:
            count *= size
        return count * self.torch_dtype.itemsize

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TensorSpec:
        return cls(data["dtype"], tuple(data["shape"]), tuple(data["strides"]), data["offset"])


@dataclass(frozen=True)
class TensorMeta:
    """Dtype name, shape and strides of a tensor, without a place."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorMeta:
        """What a tensor looks like; strides are kept where it is dense, and those of a contiguous one otherwise."""
        strides = tensor.stride() if is_dense(tensor) else _contiguous_strides(tensor.shape)
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tuple(strides))


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a block of memory without gaps or overlaps, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def lay_out(metas: Sequence[TensorMeta], start: int = 0) -> tuple[list[TensorSpec], int]:
    """Places one tensor behind the other, each aligned; gives the specs and the end of the last, in bytes."""
    specs = []
    for meta in metas:
        spec = TensorSpec(meta.dtype, meta.shape, meta.strides, start)
        specs.append(spec)
        start += -(-spec.bytes // ALIGNMENT) * ALIGNMENT
    return specs, start


@dataclass(frozen=True)
class BufferSet:
    """Where the tensors of one call's inputs and outputs lie."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """As a frame has it."""
        return {name: [spec.to_json() for spec in specs] for name, specs in vars(self).items()}

    @staticmethod
    def from_json(frame: dict[str, Any]) -> BufferSet:
        """What `to_json` gave."""
        return BufferSet(**{name: tuple(map(TensorSpec.from_json, specs)) for name, specs in frame.items()})


def view(arena: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """A new tensor object over the arena's bytes (uint8, 1-d) at a spec."""
    flat = arena[spec.offset : spec.offset + spec.bytes].view(spec.torch_dtype)
    return flat.as_strided(spec.shape, spec.strides)


class CpuArena:
    """Shared memory of a given size in bytes, created by the judge; the descriptor is inherited by the candidate."""

    def __init__(self, size: int) -> None:
        self.fd = sealed_file("inlinebench-arena", max(size, 1))
        self.bytes = _map_file(self.fd, max(size, 1))

    def export(self) -> dict[str, Any]:
        """What the candidate needs to open it."""
        return {"kind": "cpu", "size": self.bytes.numel()}

    def close(self) -> None:
        os.close(self.fd)


class CudaArena:
    """A `cudaMalloc` of a given size in bytes on a device.

    Raises torch.OutOfMemoryError if the device has no such block.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        size = max(1, -(-size // GPU_PAGE)) * GPU_PAGE
        self._runtime = _cuda_runtime()
        torch.cuda.set_device(device)
        pointer = ctypes.c_void_p()
        status = self._runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        if status:
            self._runtime.cudaGetLastError()
            raise torch.OutOfMemoryError(f"the device has no block of {size} bytes for the shared buffers")
        self._pointer, self._device = pointer, device
        self.bytes = _wrap_pointer(pointer.value, size, device)

    def export(self) -> dict[str, Any]:
        """What the candidate needs to open it."""
        handle = (ctypes.c_char * 64)()
        _checked(self._runtime.cudaIpcGetMemHandle(handle, self._pointer), "cudaIpcGetMemHandle")
        return {"kind": "cuda", "handle": bytes(handle).hex(), "size": self.bytes.numel()}

    def close(self) -> None:
        _checked(self._runtime.cudaFree(self._pointer), "cudaFree")


def create(size: int, device: torch.device) -> CpuArena | CudaArena:
    """An arena on the device."""
    return CudaArena(size, device) if device.type == "cuda" else CpuArena(size)


def open_arena(exported: dict[str, Any], device: torch.device, fd: int | None) -> torch.Tensor:
    """The judge's arena as bytes (uint8, 1-d), in the candidate; on the CPU through the descriptor it was given."""
    if exported["kind"] == "cpu":
        assert fd is not None
        return _map_file(fd, exported["size"])
    torch.cuda.set_device(device)
    handle = _IpcHandle.from_buffer_copy(bytes.fromhex(exported["handle"]))
    pointer = ctypes.c_void_p()
    # 1 is cudaIpcMemLazyEnablePeerAccess, the only flag there is.
    status = _cuda_runtime().cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, ctypes.c_uint(1))
    _checked(status, "cudaIpcOpenMemHandle")
    return _wrap_pointer(pointer.value, exported["size"], device)


class _IpcHandle(ctypes.Structure):
    """`cudaIpcMemHandle_t`, which is passed by value."""

    _fields_ = (("reserved", ctypes.c_char * 64),)


def _map_file(fd: int, size: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)


def _cuda_runtime() -> ctypes.CDLL:
    # Torch has loaded the runtime of its own version; the name with that version finds the same copy.
    assert torch.version.cuda is not None
    major = torch.version.cuda.partition(".")[0]
    return ctypes.CDLL(f"libcudart.so.{major}")


def _wrap_pointer(pointer: int | None, size: int, device: torch.device) -> torch.Tensor:
    block = types.SimpleNamespace(
        __cuda_array_interface__={"shape": (size,), "typestr": "|u1", "data": (pointer, False), "version": 3}
    )
    return torch.as_tensor(block, device=device)


def _checked(status: int, call: str) -> None:
    if status:
        raise RuntimeError(f"{call} failed with CUDA error {status}")


def _contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
