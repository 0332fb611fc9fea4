"""Notes on launches that CUDA refused: nothing ran, and many solutions do not ask for the error."""

from __future__ import annotations

import ctypes

from inlinebench.wire.arena import cuda_runtime

CUDA_REPORTS = "CUDA reports: "
"""How a candidate's note on a refused launch begins. The reason for a call that differs repeats such notes."""


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
