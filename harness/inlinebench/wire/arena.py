"""The arena: one block of shared memory for inputs, outputs and states. The judge owns it and the candidate maps it.

On the CPU it is an anonymous file (memfd) that both processes map. On a GPU it is a separate `cudaMalloc`, opened
through CUDA IPC: an IPC handle always opens the whole allocation, so it must contain nothing else of the judge's, which
torch's caching allocator does not guarantee. Torch's own tensor sharing counts references across processes and would
leak one with each killed candidate; the plain runtime calls do not count references.
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
"""Alignment in bytes, as from cudaMalloc and torch's allocator, so that vector loads work as usual."""

GPU_PAGE = 2 << 20
"""Page size in bytes. An allocation whose size is not a multiple of it is mapped with small pages in the process that
opens it: on an H100 a float32 matrix product that reads its input through such a mapping takes 1.4 % longer than in the
process that made the allocation, and a reference against itself came out at 0.988."""


@dataclass(frozen=True)
class TensorSpec:
    """The position and layout of a tensor in the arena."""

    dtype: str
    """Dtype name (`float32`)."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in elements."""
    offset: int
    """Offset into the arena in bytes."""

    @property
    def torch_dtype(self) -> torch.dtype:
        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype

    @property
    def bytes(self) -> int:
        """The size of the dense tensor in bytes."""
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
    """Dtype name, shape and strides of a tensor, without a position."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorMeta:
        """Returns the metadata of a tensor, with its strides if it is dense, and contiguous strides otherwise."""
        strides = tensor.stride() if is_dense(tensor) else _contiguous_strides(tensor.shape)
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tuple(strides))


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is an ordinary one with strides: not sparse, nested or quantized."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized


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
    """Lays tensors out one after the other, aligned. Returns the specs and the end of the last tensor in bytes."""
    specs = []
    for meta in metas:
        spec = TensorSpec(meta.dtype, meta.shape, meta.strides, start)
        specs.append(spec)
        start += -(-spec.bytes // ALIGNMENT) * ALIGNMENT
    return specs, start


@dataclass(frozen=True)
class BufferSet:
    """The positions of one call's inputs and outputs."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form for a frame."""
        return {name: [spec.to_json() for spec in specs] for name, specs in vars(self).items()}

    @staticmethod
    def from_json(frame: dict[str, Any]) -> BufferSet:
        """Returns the buffer set from the result of `to_json`."""
        return BufferSet(**{name: tuple(map(TensorSpec.from_json, specs)) for name, specs in frame.items()})


def view(arena: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """Returns a new tensor object over the part of the arena (uint8, 1-d) that `spec` describes."""
    flat = arena[spec.offset : spec.offset + spec.bytes].view(spec.torch_dtype)
    return flat.as_strided(spec.shape, spec.strides)


class CpuArena:
    """Shared memory of `size` bytes. The judge creates it, and the candidate inherits the descriptor."""

    def __init__(self, size: int) -> None:
        self.fd = sealed_file("inlinebench-arena", max(size, 1))
        self.bytes = _map_file(self.fd, max(size, 1))

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena."""
        return {"kind": "cpu", "size": self.bytes.numel()}

    def close(self) -> None:
        os.close(self.fd)


class CudaArena:
    """A `cudaMalloc` of `size` bytes on a device.

    Raises torch.OutOfMemoryError if the device does not have enough memory.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        size = max(1, -(-size // GPU_PAGE)) * GPU_PAGE
        self._runtime = cuda_runtime()
        torch.cuda.set_device(device)
        pointer = ctypes.c_void_p()
        status = self._runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        if status:
            self._runtime.cudaGetLastError()
            raise torch.OutOfMemoryError(f"the device cannot allocate {size} bytes for the shared buffers")
        self._pointer, self._device = pointer, device
        self.bytes = _wrap_pointer(pointer.value, size, device)

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena."""
        handle = (ctypes.c_char * 64)()
        _checked(self._runtime.cudaIpcGetMemHandle(handle, self._pointer), "cudaIpcGetMemHandle")
        return {"kind": "cuda", "handle": bytes(handle).hex(), "size": self.bytes.numel()}

    def close(self) -> None:
        _checked(self._runtime.cudaFree(self._pointer), "cudaFree")


def create(size: int, device: torch.device) -> CpuArena | CudaArena:
    """Creates an arena of `size` bytes on the device."""
    return CudaArena(size, device) if device.type == "cuda" else CpuArena(size)


def open_arena(exported: dict[str, Any], device: torch.device, fd: int | None) -> torch.Tensor:
    """Opens the judge's arena in the candidate and returns its bytes (uint8, 1-d). On the CPU, `fd` is its file."""
    if exported["kind"] == "cpu":
        assert fd is not None
        return _map_file(fd, exported["size"])
    torch.cuda.set_device(device)
    handle = IpcHandle.from_buffer_copy(bytes.fromhex(exported["handle"]))
    pointer = ctypes.c_void_p()
    # 1 is cudaIpcMemLazyEnablePeerAccess, the only flag that CUDA defines.
    status = cuda_runtime().cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, ctypes.c_uint(1))
    _checked(status, "cudaIpcOpenMemHandle")
    return _wrap_pointer(pointer.value, exported["size"], device)


def close_arena(opened: torch.Tensor) -> None:
    """Closes an arena on a GPU that `open_arena` opened. Its memory is not freed before."""
    _checked(cuda_runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(opened.data_ptr())), "cudaIpcCloseMemHandle")


class IpcHandle(ctypes.Structure):
    """`cudaIpcMemHandle_t`, which is passed by value."""

    _fields_ = (("reserved", ctypes.c_char * 64),)


def _map_file(fd: int, size: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)


def cuda_runtime() -> ctypes.CDLL:
    # Torch has loaded the runtime of its CUDA version. The library's name with this version finds the same copy.
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
