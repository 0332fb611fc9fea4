"""Counts what a candidate can open of other processes' GPU memory by guessing.

    python benchmarks/guessed_handles.py [--guesses N]    print a table; status 1 if foreign memory opens

A solution takes the handle of CUDA IPC of an allocation of its own, and opens handles near it. What opens is this
allocation, since parts of a handle do not count, if it has the contents that the solution wrote. Otherwise it is
foreign. The solution also imports every small number as a descriptor of shared memory of CUDA's virtual memory API. It
needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.foreign import message  # noqa: E402
from tests.running import run_eval  # noqa: E402

PROBLEM = "matmul_diag"
SOLUTION = """
import ctypes, json
from torch import nn
from tests.cheats import handles

MARK, READ_BYTES, DESCRIPTORS, POSIX_DESCRIPTOR = 0xA7, 32, 1 << 16, 1


class ModelNew(nn.Module):
    def forward(self, diagonal, matrix):
        found = {"handles of CUDA IPC": self.guess(handles.own_handle(diagonal.device, MARK)),
                 "descriptors": self.import_descriptors()}
        raise RuntimeError("FOUND" + json.dumps(found) + "END")

    def guess(self, known):
        found = [handles.beginning(handle, READ_BYTES) for handle in handles.guesses(known, GUESSES)]
        opened = [memory for memory in found if memory is not None]
        foreign = [memory for memory in opened if memory != bytes([MARK]) * READ_BYTES]
        return {"tried": len(found), "opened": len(opened), "foreign": len(foreign), "contents": len(set(foreign))}

    def import_descriptors(self):
        driver, opened = ctypes.CDLL("libcuda.so.1"), 0
        for descriptor in range(DESCRIPTORS):
            handle = ctypes.c_uint64()
            if driver.cuMemImportFromShareableHandle(
                    ctypes.byref(handle), ctypes.c_void_p(descriptor), POSIX_DESCRIPTOR) == 0:
                opened += 1
                driver.cuMemRelease(handle)
        return {"tried": DESCRIPTORS, "opened": opened, "foreign": opened, "contents": 0}
"""
COLUMNS = ("tried", "opened", "foreign", "contents")


def measure(guesses: int, device: str) -> dict[str, dict[str, int]]:
    """Returns the counts of each way to guess. Raises SystemExit if the solution does not report any."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "solutions", PROBLEM, "guesses.py")
        path.parent.mkdir(parents=True)
        path.write_text(SOLUTION.replace("GUESSES", str(guesses)))
        run = run_eval(f"{PROBLEM}/guesses", "--solutions", path.parent.parent, "--device", device, "--shape", "small",
                       "--check", "--timeout", "600", out=Path(folder, "out.jsonl"))
    [result] = run.results
    found = re.search("FOUND(.*)END", result.reason)
    if found is None:
        raise SystemExit(message(f"{result.verdict}: {result.reason}"))
    return dict(json.loads(found[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guesses", type=int, default=100_000, metavar="N", help="handles to try near each known one")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    found = measure(given.guesses, given.device)
    rows = [[way, *(counts[column] for column in COLUMNS)] for way, counts in found.items()]
    print(tabulate(rows, headers=["guessed", *COLUMNS[:-1], "different foreign contents"], tablefmt="github"))
    return int(any(counts["foreign"] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())
