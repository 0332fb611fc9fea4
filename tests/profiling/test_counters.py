"""Counters from tables as Nsight Compute prints them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import pytest

from inlinebench.profiling.counters import read, with_counters
from inlinebench.results.launches import Counters
from inlinebench.results.result import Kernels, KernelShare

L1, STALL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum", "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
H100 = {
    "gpu__time_duration.sum": "1,200,000", "dram__bytes_read.sum": "268,435,456", "dram__bytes_write.sum": "1,024",
    "dram__bytes_read.sum.pct_of_peak_sustained_elapsed": "20.5",
    "dram__bytes_write.sum.pct_of_peak_sustained_elapsed": "0.50",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "45",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "0",
    "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active": "12.5",
    L1.format("sectors", "ld"): "3,200", L1.format("requests", "ld"): "100",
    L1.format("sectors", "st"): "0", L1.format("requests", "st"): "0",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "31",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "32",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed": "90",
    "smsp__inst_executed_op_global_red.sum": "0", "smsp__inst_executed_op_generic_atom_dot_alu.sum": "2,097,152",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": "64", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": "36",
    STALL.format("selected"): "1.0", STALL.format("not_selected"): "9.0",
    STALL.format("long_scoreboard"): "6.0", STALL.format("barrier"): "4.0",
    "launch__cluster_scheduling_policy": "PolicySpread",
}


def table(*launches: tuple[str, Mapping[str, str]]) -> str:
    """Returns a table with a row for each launch, which has the name of its kernel and its metrics."""
    names = list(dict.fromkeys(name for _, metrics in launches for name in metrics))
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([["ID", "Kernel Name", *names], ["", "", *("" for _ in names)]])
    writer.writerows([number, kernel, *(metrics.get(name, "") for name in names)]
                     for number, (kernel, metrics) in enumerate(launches))
    return "==PROF== Connected\n" + text.getvalue()


def test_all_counters_of_a_launch_are_read() -> None:
    assert read(table(("rows", H100))) == {"rows": Counters(
        ms=1.2, dram_bytes=268_436_480, dram_share=0.21, l2_share=0.45, tensor_share=0.125, sectors=32.0,
        shared_share=0.9, conflict_share=31 / 32, atomics=2_097_152, local_bytes=3_200,
        stall="long_scoreboard", stall_share=0.3)}


def test_counts_are_added_up_over_launches_and_shares_are_those_of_the_longest() -> None:
    brief = {"gpu__time_duration.sum": "100000", "dram__bytes_read.sum": "1000", L1.format("sectors", "ld"): "4"}
    (found,) = read(table(("rows", {**H100, **brief}), ("rows", H100))).values()
    assert (found.ms, found.dram_bytes) == (1.3, 268_435_456 + 1_000 + 2 * 1_024)
    assert (found.sectors, found.atomics, found.local_bytes) == (32.0, 2 * 2_097_152, 2 * 3_200)


@pytest.mark.parametrize(("stores", "sectors"), [("1,600", 32.0), ("6,400", 16.0)])
def test_the_accesses_that_touch_more_sectors_count(stores: str, sectors: float) -> None:
    some = {L1.format("sectors", "st"): stores, L1.format("requests", "st"): "400"}
    assert read(table(("rows", {**H100, **some})))["rows"].sectors == sectors


def test_counters_that_the_gpu_does_not_have_are_unknown() -> None:
    assert read(table(("rows", {"gpu__time_duration.sum": "2000"}))) == {"rows": Counters(0.002)}


@pytest.mark.parametrize("text", ["", "==ERROR== no kernels", table(("rows", {"dram__bytes_read.sum": "1"}))])
def test_a_text_without_durations_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no "):
        read(text)


def test_counters_go_to_the_kernel_of_their_function() -> None:
    names = ("void (anonymous namespace)::rows<float, 4>(float*)", "void rows<float, 1>(float*)", "plain",
             "void arrows<4>(float*)", "Memcpy")
    kernels = Kernels(1.0, tuple(KernelShare(name, "own", 1.0, 0.25) for name in names))
    found = with_counters(kernels, {"rows": Counters(2.0), "plain": Counters(3.0), "absent": Counters(4.0)})
    assert [each.counters and each.counters.ms for each in found.top] == [2.0, None, 3.0, None, None]
