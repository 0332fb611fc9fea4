"""Counts what a candidate can open of other processes' GPU memory by guessing.

    python benchmarks/guessed_handles.py [--guesses N]    print a table; status 1 if anything but the arena opens

A solution takes the handles of CUDA IPC that it has, of the arena and of an allocation of its own, and opens handles
near them. What opens is the arena, which it was granted, if it holds a mark that the solution has written there;
otherwise it is foreign memory. The solution also imports every small number as a descriptor of shared memory of CUDA's
virtual memory API. It needs a GPU.
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
import ctypes, json, os, secrets
import torch
from torch import nn
from tests.cheats import handles

MARK, DESCRIPTORS, POSIX_DESCRIPTOR = secrets.token_bytes(32), 1 << 16, 1


class ModelNew(nn.Module):
    def forward(self, diagonal, matrix):
        arena = diagonal.untyped_storage()
        mark = torch.frombuffer(bytearray(MARK), dtype=torch.uint8).to(diagonal.device)
        torch.empty(0, dtype=torch.uint8, device=diagonal.device).set_(arena, 0, (arena.nbytes(),))[: len(MARK)] = mark
        torch.cuda.synchronize()
        found = {"handles of the arena": self.guess(handles.arena_handles),
                 "handles of its own": self.guess([handles.own_handle(diagonal.device)]),
                 "descriptors": self.import_descriptors()}
        raise RuntimeError("FOUND" + json.dumps(found) + "END")

    def guess(self, known):
        counts = {"tried": 0, "opened": 0, "granted": 0, "foreign": 0, "contents": 0}
        contents = set()
        for handle in known:
            for other in handles.guesses(handle, GUESSES):
                counts["tried"] += 1
                memory = handles.beginning(other, len(MARK))
                if memory is not None:
                    counts["opened"] += 1
                    counts["granted" if memory == MARK else "foreign"] += 1
                    contents |= {memory} - {MARK}
        return {**counts, "contents": len(contents)}

    def import_descriptors(self):
        driver, opened = ctypes.CDLL("libcuda.so.1"), 0
        for descriptor in range(DESCRIPTORS):
            handle = ctypes.c_uint64()
            if driver.cuMemImportFromShareableHandle(
                    ctypes.byref(handle), ctypes.c_void_p(descriptor), POSIX_DESCRIPTOR) == 0:
                opened += 1
                driver.cuMemRelease(handle)
        return {"tried": DESCRIPTORS, "opened": opened, "granted": 0, "foreign": opened, "contents": 0}
"""
COLUMNS = ("tried", "opened", "granted", "foreign", "contents")


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
