"""Notes on launches that CUDA refused: nothing ran, and many solutions do not ask for the error."""

from __future__ import annotations

import ctypes

from inlinebench.devices.cuda.runtime import cuda_runtime


class PendingError:
    """The error that CUDA keeps for `cudaGetLastError`. Uses the copy of the runtime that torch uses, and that
    `load_inline` links solutions with."""

    def __init__(self) -> None:
        self._runtime = cuda_runtime()
        self._runtime.cudaGetErrorString.restype = ctypes.c_char_p

    def describe(self) -> str:
        """Returns what the error is, or "" if there is none. The error stays, as a solution may ask for it later."""
        status = self._runtime.cudaPeekAtLastError()
        return self._runtime.cudaGetErrorString(status).decode() if status else ""
