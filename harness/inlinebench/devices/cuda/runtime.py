"""The CUDA runtime that torch has loaded, and its type for handles of shared memory."""

from __future__ import annotations

import ctypes

import torch


class IpcHandle(ctypes.Structure):
    """`cudaIpcMemHandle_t`, which is passed by value."""

    _fields_ = (("reserved", ctypes.c_char * 64),)


def cuda_runtime() -> ctypes.CDLL:
    # Torch has loaded the runtime of its CUDA version. The library's name with this version finds the same copy.
    assert torch.version.cuda is not None
    major = torch.version.cuda.partition(".")[0]
    return ctypes.CDLL(f"libcudart.so.{major}")


def checked(status: int, call: str) -> None:
    """Raises RuntimeError if a call of the runtime failed."""
    if status:
        raise RuntimeError(f"{call} failed with CUDA error {status}")
