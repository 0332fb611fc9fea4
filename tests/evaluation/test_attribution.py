from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.evaluation.integrity.attribution import (
    BETWEEN,
    COPY,
    LIBRARY,
    OWN,
    TRITON,
    BuiltKernels,
    Origins,
    has_clock,
    read_profile,
)
from inlinebench.process.replies import ProvenanceReply
from inlinebench.results.launches import Launched
from inlinebench.timing.trace import Activity, Launch


@pytest.fixture
def built(tmp_path: Path) -> BuiltKernels:
    library = tmp_path / "own.so"
    library.write_bytes(b"\x7fELF\0_ZN12_GLOBAL__N_17softmaxIfLi4EEEvPKfPfl\0plain_c_kernel\0_ZN5ScaleclEPf\0rest")
    return BuiltKernels([library])


@pytest.mark.parametrize(("name", "origin"), [
    ("void (anonymous namespace)::softmax<float, 4>(float const*, float*, long)", OWN),
    ("plain_c_kernel", OWN),
    ("c_kernel", LIBRARY),
    ("Scale::operator()(float*)", OWN),
    ("Other::operator()(float*)", LIBRARY),
    ("void (anonymous namespace)::softmax<float, 8>(float const*, float*, long)", LIBRARY),
    ("add_rows", TRITON),
    ("never_compiled", LIBRARY),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", LIBRARY),
    ("Memcpy DtoD (Device -> Device)", COPY),
    ("Memset (Device)", COPY),
])
def test_the_origin_of_a_kernel(built: BuiltKernels, name: str, origin: str) -> None:
    assert Origins(built, ProvenanceReply(triton=frozenset({"add_rows"}))).of(name) == origin


CTYPES = ("/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so", "/lib/libffi.so.8",
          "/opt/python/lib/libpython3.12.so.1.0", "/usr/bin/python3.12", "python")


@pytest.mark.parametrize(("launched_by", "origin"), [
    *(((file,), OWN) for file in CTYPES),
    (("/env/lib/python3.12/site-packages/cuda/bindings/_bindings/cydriver.so",), OWN),
    (("own.so",), OWN),
    (("/scratch/built_by_nvcc.so",), OWN),
    (("/env/lib/libtorch_python.so",), LIBRARY),
    (("/env/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so",), LIBRARY),  # jiterator
    (("/env/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn_engines_runtime_compiled.so.9",), LIBRARY),
    (("/env/lib/python3.12/site-packages/flash_attn_2_cuda.so",), LIBRARY),
    (("/scratch/triton_cache_dir/ABC/__triton_launcher.so",), LIBRARY),  # TorchInductor's
    ((CTYPES[0], "/env/lib/libtorch_cuda.so"), LIBRARY),
    ((CTYPES[0], "own.so"), OWN),
    ((), LIBRARY),
])
def test_a_kernel_compiled_at_run_time_is_the_solutions_if_its_code_launches_it(
    built: BuiltKernels, launched_by: tuple[str, ...], origin: str
) -> None:
    own = str(built.libraries[0])
    launches = tuple(Launch("rows::combine<float>(float*)", file.replace("own.so", own)) for file in launched_by)
    origins = Origins(built, ProvenanceReply(
        launches=(*launches, Launch("other", CTYPES[0])), libraries=frozenset({"/scratch/built_by_nvcc.so"})))
    assert origins.of("rows::combine<float>(float*)") == origin


@pytest.mark.parametrize(("launched_by", "origin"), [
    ("/scratch/triton_cache_dir/ABC/__triton_launcher.so", TRITON),
    ("/usr/local/cuda/lib64/libcublasLt.so.13", LIBRARY),
])
def test_a_triton_function_does_not_take_the_name_of_a_kernel_that_a_library_launches(
    built: BuiltKernels, launched_by: str, origin: str
) -> None:
    launches = (Launch("ampere_sgemm_128x64_nt", launched_by),)
    origins = Origins(built, ProvenanceReply(frozenset({"ampere_sgemm_128x64_nt"}), launches))
    assert origins.of("ampere_sgemm_128x64_nt") == origin


def origin(name: str) -> str:
    return COPY if name.startswith("Mem") else OWN if name.startswith("own") else LIBRARY


def call(*work: tuple[str, float, float], before: tuple[tuple[str, float, float], ...] = ()) -> list[Activity]:
    """Returns the activities of a call. The blocking kernel runs from 10 to 100 µs and the clock stops at 200 µs."""
    rows = [*before, ("inlinebench_flush", 0, 10), ("inlinebench_block", 10, 100), *work,
            ("inlinebench_stop", 200, 201), ("Memcpy DtoD (Device -> Device)", 202, 210)]
    return sorted((Activity(*row) for row in rows), key=lambda activity: activity.begin_us)


def test_a_profile_tells_how_often_and_how_each_kernel_was_launched_and_when_the_gpu_was_idle() -> None:
    short, long = Launched(1, 32, 16, 0), Launched(264, 256, 40, 1024)
    activities = [*call(("gemm", 110, 120)), Activity("own", 120, 125, short), Activity("own", 135, 145, long)]
    profile = read_profile(activities, origin)
    assert profile is not None
    assert [(each.name, each.launches, each.launch) for each in profile.top] == [
        ("own", 2, long), ("gemm", 1, None)]
    assert profile.activities == 3 and profile.idle_ms == pytest.approx(0.010)


def test_work_on_two_streams_leaves_no_idle_time() -> None:
    profile = read_profile(call(("own", 101, 150), ("gemm", 110, 120), ("own", 130, 180)), origin)
    assert profile is not None and profile.idle_ms == 0.0


def test_shares_and_times_count_only_kernels_between_the_blocking_kernel_and_the_stop() -> None:
    profile = read_profile(call(("own", 101, 131), ("gemm", 140, 190), ("own", 190, 200)), origin)
    assert profile is not None
    assert profile.own_share == pytest.approx(40 / 90)
    assert [(share.name, share.origin, share.ms) for share in profile.top] == [
        ("gemm", LIBRARY, pytest.approx(0.05)), ("own", OWN, pytest.approx(0.04)),
    ]
    assert set(profile.library) == {"gemm"}


@pytest.mark.parametrize("outside", [("own", 50.0, 60.0), ("own", 201.0, 205.0)])
def test_kernels_outside_of_the_clock_do_not_count(outside: tuple[str, float, float]) -> None:
    profile = read_profile(call(("gemm", 101, 131), outside), origin)
    assert profile is not None and profile.own_share == 0.0


def test_activities_without_the_clocks_own_kernels_give_no_profile() -> None:
    assert has_clock(call(("own", 101, 131)))
    assert not has_clock([Activity("own", 0, 1)])
    assert read_profile([], origin) is None
    assert read_profile([Activity("own", 0, 1)], origin) is None
    assert read_profile([Activity("inlinebench_block", 0, 1), Activity("own", 1, 2)], origin) is None


def test_a_call_that_runs_no_kernel_has_an_own_share_of_zero() -> None:
    profile = read_profile(call(), origin)
    assert profile is not None and (profile.own_share, profile.top) == (0.0, ())


_row = st.tuples(st.sampled_from(["own", "gemm", "Memset"]), st.floats(100, 199), st.floats(0, 50))


@given(st.lists(_row, max_size=8))
def test_shares_add_up(rows: list[tuple[str, float, float]]) -> None:
    profile = read_profile(call(*((name, begin, begin + length) for name, begin, length in rows)), origin)
    assert profile is not None
    assert 0 <= profile.own_share <= 1 + 1e-9
    assert sum(share.share for share in profile.top) <= 1 + 1e-9


def test_the_kernel_between_the_passes_splits_the_time() -> None:
    activities = [
        Activity("inlinebench_block", 0, 10), Activity("own", 11, 13), Activity(BETWEEN, 13, 14),
        Activity("library", 15, 18), Activity("own", 18, 19), Activity("inlinebench_stop", 20, 21)]
    profile = read_profile(activities, {"own": OWN, "library": LIBRARY}.__getitem__)
    assert profile is not None and profile.own_share == 0.5
    assert [(each.name, each.ms, each.own_share) for each in profile.passes] == [
        ("forward", 0.002, 1.0), ("backward", 0.004, 0.25)]


@pytest.mark.parametrize("begin", [None, 5, 30])
def test_a_call_without_a_kernel_between_its_passes_is_not_split(begin: float | None) -> None:
    marks = [] if begin is None else [Activity(BETWEEN, begin, begin + 1)]  # of the clock's own measurements
    activities = [Activity("inlinebench_block", 0, 10), Activity("own", 11, 13), Activity("inlinebench_stop", 20, 21)]
    profile = read_profile([*activities, *marks], lambda _: OWN)
    assert profile is not None and profile.passes == ()
