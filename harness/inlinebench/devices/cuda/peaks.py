"""Measures the peaks of a GPU: the bandwidths of copies and reads, and the rate of matrix products at each accuracy.

Programs do not reach the peaks of a data sheet, and real peaks vary with clocks and power limit. So all are the best
results of PyTorch's own copies, sums and matrix products on this GPU. They are cached in a file until something changes
that they depend on.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from inlinebench.timing.call import Clock, timed_call
from inlinebench.timing.overhead import null_ms
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.trace import Tracer

REPEATS = 10
ENOUGH_MS = 300.0
"""Time in ms after which slow work is not repeated any more."""
BLOCKING_MS = 50.0
TENSOR_CORES_FOR_ALL = 8
"""The first major compute capability with TF32 and bfloat16."""
SMALLEST_SIDE = 256

PROCEDURE = 3
"""Version of the procedure, part of every cache key. Raise it if `measure` measures something else."""


@dataclass(frozen=True)
class Sizes:
    """The sizes to measure: bytes to copy and read, and the sides of square matrices, of float64 and of other kinds."""

    copy_bytes: int = 1 << 30
    side: int = 8192
    double_side: int = 4096

    def within(self, free: int) -> Sizes:
        """Returns these sizes, reduced so that each measurement takes at most half of `free` bytes."""
        room = free // 2
        side, double_side = _side(self.side, 4, room), _side(self.double_side, 8, room)
        return Sizes(max(4, min(self.copy_bytes, room // 2)), side, double_side)


def measure(
    clock: Clock, device: torch.device, sizes: Sizes | None = None, tracer: Tracer | None = None
) -> Peaks:
    """Measures a device, in about a second on a large GPU. TF32 and all random generators are left as they were.

    Without `tracer`, which traces with CUPTI, `null_ms` is None. Raises torch.OutOfMemoryError if not even small
    matrices fit, and whatever the clock raises.
    """
    if sizes is None:
        sizes = Sizes().within(torch.cuda.mem_get_info(device)[0])
    # float32 products come first: they take longest, and raise the clocks for the others.
    matmul = {kind: _matmul_flops_s(clock, device, kind, sizes) for kind in _kinds(device)}
    copied = _copy_bytes_s(clock, device, sizes.copy_bytes)
    torch.cuda.empty_cache()  # other processes need the memory
    return Peaks(copied, matmul, None if tracer is None else null_ms(clock, tracer))


def _kinds(device: torch.device) -> tuple[str, ...]:
    if torch.cuda.get_device_capability(device)[0] < TENSOR_CORES_FOR_ALL:
        return ("float32", "float16", "float64")
    return ("float32", "tf32", "float16", "bfloat16", "float64")


def _matmul_flops_s(clock: Clock, device: torch.device, kind: str, sizes: Sizes) -> float:
    dtype = getattr(torch, "float32" if kind == "tf32" else kind)
    side = sizes.double_side if kind == "float64" else sizes.side
    generator = torch.Generator(device).manual_seed(0)
    left, right = (torch.rand(side, side, dtype=dtype, device=device, generator=generator) for _ in range(2))
    product = torch.empty_like(left)
    # Which layout is faster differs: Hopper's tensor cores support TF32 only with the summed dimension innermost.
    works = [lambda: torch.matmul(left, right, out=product), lambda: torch.matmul(left, right.t(), out=product)]
    with _tf32(kind == "tf32"):
        return 2 * side**3 / _best_s(clock, works)


def _copy_bytes_s(clock: Clock, device: torch.device, size: int) -> float:
    source = torch.rand(size // 4, device=device, generator=torch.Generator(device).manual_seed(0))
    target = torch.empty_like(source)
    # Either the driver's copy or an elementwise kernel may be faster.
    works = [lambda: target.copy_(source), lambda: torch.neg(source, out=target)]
    return 2 * source.numel() * source.element_size() / _best_s(clock, works)


def _best_s(clock: Clock, works: Sequence[Callable[[], object]]) -> float:
    return min(_best_ms(clock, work) for work in works) / 1e3


def _best_ms(clock: Clock, work: Callable[[], object]) -> float:
    work()  # loads kernels and allocates memory, which would wait for the device behind a blocking kernel
    best, spent = math.inf, 0.0
    for _ in range(REPEATS):
        taken = timed_call(clock, work, lambda _: None, BLOCKING_MS)[1].device_ms
        best, spent = min(best, taken), spent + taken
        if spent > ENOUGH_MS:
            break
    return best


def _side(wanted: int, item_bytes: int, room: int) -> int:
    """Returns `wanted`, halved until three square matrices of this side fit into `room` bytes."""
    while wanted > SMALLEST_SIDE and 3 * wanted * wanted * item_bytes > room:
        wanted //= 2
    return wanted


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Sets TF32 through the older of torch's two interfaces, as everywhere in the harness: mixing both raises."""
    found = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = found


@dataclass(frozen=True)
class PeaksKey:
    """All known facts that peaks depend on. None stands for an unknown fact."""

    uuid: str
    gpu: str
    torch: str
    driver: str | None = None
    max_sm_mhz: int | None = None
    """Highest SM clock."""
    max_memory_mhz: int | None = None
    """Highest memory clock."""
    set_sm_mhz: int | None = None
    """SM clock set for applications."""
    set_memory_mhz: int | None = None
    """Memory clock set for applications."""
    power_w: int | None = None
    """Power limit."""
    cupti: bool = field(default=False, kw_only=True)
    """Whether CUPTI can be used."""


QUERY = ("driver_version", "clocks.max.sm", "clocks.max.memory", "clocks.applications.graphics",
         "clocks.applications.memory", "enforced.power.limit")


def key_of(device: torch.device) -> PeaksKey:
    """Returns the key of a GPU's peaks. Facts that nvidia-smi does not report are None."""
    properties = torch.cuda.get_device_properties(device)
    uuid = str(properties.uuid)
    driver, *numbers = _ask_nvidia_smi(uuid)
    return PeaksKey(uuid, properties.name, str(torch.__version__), driver or None, *map(_number, numbers))


def _ask_nvidia_smi(uuid: str) -> list[str]:
    named = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    command = ["nvidia-smi", f"--id={named}", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    unknown = [""] * len(QUERY)
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return unknown
    facts = [fact.strip() for fact in found.stdout.partition("\n")[0].split(",")]
    return facts if len(facts) == len(QUERY) else unknown


def _number(fact: str) -> int | None:
    try:
        return round(float(fact))
    except (ValueError, OverflowError):  # "[N/A]", or other words of an old driver
        return None


def cached(folder: Path, key: PeaksKey, measure: Callable[[], Peaks]) -> Peaks:
    """Returns the peaks from the key's file in `folder`, or measures them and writes that file.

    A file that is damaged or belongs to another key is measured again and replaced, so several processes can share the
    folder. Raises only what `measure` raises: if the file cannot be written, the next run measures again.
    """
    facts = {"procedure": PROCEDURE, **asdict(key)}
    path = folder / f"{_digest(facts)}.json"
    if (kept := _read(path, facts)) is not None:
        return kept
    peaks = measure()
    if key.cupti and peaks.null_ms is None:
        return peaks  # do not store that CUPTI failed: it does so while another tool uses it
    with suppress(OSError):
        _write(path, facts, peaks)
    return peaks


def _read(path: Path, facts: Mapping[str, Any]) -> Peaks | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry["key"] != facts or entry["sha256"] != _digest(entry["peaks"]):
            return None
        return Peaks(**entry["peaks"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _write(path: Path, facts: Mapping[str, Any], peaks: Peaks) -> None:
    measured = asdict(peaks)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        try:
            json.dump({"key": facts, "peaks": measured, "sha256": _digest(measured)}, file)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
