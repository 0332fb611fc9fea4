"""Reads the GPU's counters from what `ncu --import REPORT --csv --page raw` prints.

The names of metrics differ between GPUs and versions of Nsight Compute. A counter without any of its metrics is None.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inlinebench.results.launches import Counters
from inlinebench.results.result import Kernels

KERNEL = "Kernel Name"
DURATION_NS = "gpu__time_duration.sum"
DRAM_BYTES = r"dram__bytes_(read|write)\.sum"
DRAM_PERCENT = r"dram__bytes_(read|write)\.sum\.pct_of_peak_sustained_elapsed"
L2_PERCENT = r"lts__throughput\.avg\.pct_of_peak_sustained_elapsed"
TENSOR_PERCENT = r"sm__(inst_executed_)?pipe_tensor\w*\.avg\.pct_of_peak_sustained_(active|elapsed)"
SECTORS = r"l1tex__t_sectors_pipe_lsu_mem_global_op_{}\.sum"
REQUESTS = r"l1tex__t_requests_pipe_lsu_mem_global_op_{}\.sum"
CONFLICTS = r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared\.sum"
WAVEFRONTS = r"l1tex__data_pipe_lsu_wavefronts_mem_shared\.sum"
SHARED_PERCENT = WAVEFRONTS + r"\.pct_of_peak_sustained_elapsed"
ATOMICS = (r"(l1tex__t_requests_pipe_lsu_mem_global_op|smsp__(sass_)?inst_executed_op_(global|generic))"
           r"_(atom|red)(_dot_(alu|cas))?\.sum")
LOCAL_SECTORS = r"l1tex__t_sectors_pipe_lsu_mem_local_op_(ld|st)\.sum"
SECTOR_BYTES = 32
STALLED = r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"
WORKING = ("selected", "not_selected")
"""States of a warp that could execute, so that it did not wait for anything."""

Metrics = Mapping[str, float]
"""The metrics of one launch."""


def read(text: str) -> dict[str, Counters]:
    """Returns the counters of each function that was launched, by its name without namespace and parameters.

    Raises ValueError if the text has no table, or no durations.
    """
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise ValueError("no table of metrics")
    launches: dict[str, list[Metrics]] = {}
    names, *rows = csv.reader(lines[begin:])
    for texts in rows:
        row = dict(zip(names, texts, strict=False))
        if row.get("ID"):  # the row below the names has their units
            launches.setdefault(row.get(KERNEL, ""), []).append(_numbers(row))
    return {name: _counters(each) for name, each in launches.items()}


def with_counters(kernels: Kernels, counters: Mapping[str, Counters]) -> Kernels:
    """Adds to each kernel the counters of its function. Of several instances of a template, the longest gets them."""
    left, top = dict(counters), []
    for share in kernels.top:
        function = next((each for each in left if _is_of(share.name, each)), None)
        top.append(share if function is None else replace(share, counters=left.pop(function)))
    return replace(kernels, top=tuple(top))


def _is_of(kernel: str, function: str) -> bool:
    """Whether a demangled name is that of a function."""
    return kernel == function or re.search(rf"(?<!\w){re.escape(function)}\s*[<(]", kernel) is not None


def _numbers(row: Mapping[str, str]) -> Metrics:
    found = {}
    for name, text in row.items():
        if text and re.fullmatch(r"-?[\d,]+(\.\d+)?(e[+-]?\d+)?", text, re.IGNORECASE):
            found[name] = float(text.replace(",", ""))
    return found


def _counters(launches: Sequence[Metrics]) -> Counters:
    if any(DURATION_NS not in each for each in launches):
        raise ValueError("no durations")
    longest = max(launches, key=lambda each: each[DURATION_NS])
    moved, atomics = _total(launches, DRAM_BYTES), [_most(each, ATOMICS) for each in launches]
    local_sectors = _total(launches, LOCAL_SECTORS)
    stall, stall_share = _stall(longest)
    return Counters(
        ms=sum(each[DURATION_NS] for each in launches) / 1e6,
        dram_bytes=None if moved is None else round(moved),
        dram_share=_share(_total([longest], DRAM_PERCENT)),
        l2_share=_share(_most(longest, L2_PERCENT)),
        tensor_share=_share(_most(longest, TENSOR_PERCENT)),
        sectors=_sectors(longest),
        shared_share=_share(_most(longest, SHARED_PERCENT)),
        conflict_share=_ratio(longest, CONFLICTS, WAVEFRONTS),
        atomics=None if None in atomics else round(sum(filter(None, atomics))),
        local_bytes=None if local_sectors is None else round(local_sectors) * SECTOR_BYTES,
        stall=stall,
        stall_share=stall_share,
    )


def _values(metrics: Metrics, pattern: str) -> list[float]:
    return [value for name, value in metrics.items() if re.fullmatch(pattern, name)]


def _most(metrics: Metrics, pattern: str) -> float | None:
    """Returns the largest metric whose name matches: what one GPU has under several names, or in several parts."""
    return max(_values(metrics, pattern), default=None)


def _total(launches: Sequence[Metrics], pattern: str) -> float | None:
    found = [value for metrics in launches for value in _values(metrics, pattern)]
    return sum(found) if found else None


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _ratio(metrics: Metrics, above: str, below: str) -> float | None:
    """Returns a ratio, 0 if nothing was counted."""
    upper, lower = _most(metrics, above), _most(metrics, below)
    if upper is None or lower is None:
        return None
    return upper / lower if lower else 0.0


def _sectors(metrics: Metrics) -> float | None:
    """Returns the sectors of a load or a store, whichever touch more in all."""
    more = max(("ld", "st"), key=lambda each: _most(metrics, SECTORS.format(each)) or 0.0)
    return _ratio(metrics, SECTORS.format(more), REQUESTS.format(more))


def _stall(metrics: Metrics) -> tuple[str | None, float | None]:
    """Returns what warps waited for most, and its share of their time."""
    states = {found[1]: value for name, value in metrics.items() if (found := re.fullmatch(STALLED, name))}
    waited = {state: value for state, value in states.items() if state not in WORKING}
    if not any(waited.values()):
        return None, None
    worst = max(waited, key=lambda state: waited[state])
    return worst, waited[worst] / sum(states.values())
