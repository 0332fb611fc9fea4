"""Runs one planted bug: python run_bug.py LIBRARY RUNTIME SIZE.

Prints one line of JSON: the error that the launches reported ("" for none), and the largest error of the result for
each of the two schedules (NaN counts as infinite). A crash ends the process with a message on standard error.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

from cuda_on_cpu import Runtime


def main(library_path: str, runtime_path: str, size: str) -> None:
    """Calls `run(x, out, n)`, which should compute 2 * x, under both schedules."""
    runtime, library = Runtime(Path(runtime_path)), ctypes.CDLL(library_path)
    library.case_allocate.restype = ctypes.c_void_p
    runtime.throw_errors(False)
    n = int(size)
    x = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    errors: list[float] = []
    for seed in (0, 1):
        runtime.set_block_order(seed)
        given, result = (ctypes.c_void_p(library.case_allocate(ctypes.c_size_t(x.nbytes))) for _ in range(2))
        library.case_copy_in(given, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(x.nbytes))
        library.run(given, result, ctypes.c_int(n))
        out = np.empty_like(x)
        library.case_copy_out(out.ctypes.data_as(ctypes.c_void_p), result, ctypes.c_size_t(x.nbytes))
        errors.append(float(np.nan_to_num(np.abs(out - 2 * x), nan=np.inf).max()))
        if error := runtime.take_error():
            break
    print(json.dumps({"error": error, "errors": errors}))


if __name__ == "__main__":
    main(*sys.argv[1:])
