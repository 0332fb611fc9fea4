"""The limits of a GPU's SMs, from the CUDA runtime."""

from __future__ import annotations

import ctypes

from inlinebench.devices.cuda.runtime import checked, cuda_runtime
from inlinebench.results.launches import Multiprocessors

ATTRIBUTES = {"count": 16, "threads": 39, "blocks": 106, "registers": 82, "shared_bytes": 81, "reserved_bytes": 111}
"""The number of the `cudaDeviceAttr` that has each field of `Multiprocessors`."""


def multiprocessors(index: int) -> Multiprocessors:
    """Returns the limits of the GPU with this number. Raises RuntimeError if the runtime does not know them."""
    runtime = cuda_runtime()

    def ask(attribute: int) -> int:
        value = ctypes.c_int()
        checked(runtime.cudaDeviceGetAttribute(ctypes.byref(value), attribute, index), "cudaDeviceGetAttribute")
        return value.value

    return Multiprocessors(**{field: ask(attribute) for field, attribute in ATTRIBUTES.items()})
