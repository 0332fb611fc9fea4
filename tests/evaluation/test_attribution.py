from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.evaluation.integrity.attribution import (
    COPY,
    LIBRARY,
    OWN,
    TRITON,
    BuiltKernels,
    Origins,
    has_clock,
    read_profile,
)
from inlinebench.process.replies import Provenance
from inlinebench.timing.profile import Activity, Launch


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
    assert Origins(built, Provenance(triton=frozenset({"add_rows"}))).of(name) == origin


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
    origins = Origins(built, Provenance(
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
    origins = Origins(built, Provenance(frozenset({"ampere_sgemm_128x64_nt"}), launches))
    assert origins.of("ampere_sgemm_128x64_nt") == origin


def origin(name: str) -> str:
    return COPY if name.startswith("Mem") else OWN if name.startswith("own") else LIBRARY


def call(*work: tuple[str, float, float], before: tuple[tuple[str, float, float], ...] = ()) -> list[Activity]:
    """Returns the activities of a call. The blocking kernel runs from 10 to 100 µs and the clock stops at 200 µs."""
    rows = [*before, ("inlinebench_flush", 0, 10), ("inlinebench_block", 10, 100), *work,
            ("inlinebench_stop", 200, 201), ("Memcpy DtoD (Device -> Device)", 202, 210)]
    return sorted((Activity(*row) for row in rows), key=lambda activity: activity.begin_us)


def test_shares_and_times_count_only_kernels_between_the_blocking_kernel_and_the_stop() -> None:
    profile = read_profile(call(("own", 101, 131), ("gemm", 140, 190), ("own", 190, 200)), origin)
    assert profile is not None
    assert profile.own_share == pytest.approx(40 / 90)
    assert profile.busy_ms == pytest.approx(0.090)
    assert [(share.name, share.origin, share.ms) for share in profile.top] == [
        ("gemm", LIBRARY, pytest.approx(0.05)), ("own", OWN, pytest.approx(0.04)),
    ]
    assert (profile.early, profile.late, set(profile.library)) == ("", "", {"gemm"})


def test_overlapping_kernels_count_once_in_the_busy_time() -> None:
    profile = read_profile(call(("own a", 101, 141), ("own b", 111, 131), ("own c", 140, 151)), origin)
    assert profile is not None and profile.busy_ms == pytest.approx(0.050)


@pytest.mark.parametrize("early", [
    ("gemm", 50.0, 60.0), ("own", 50.0, 120.0), ("own", 5.0, 8.0), ("own", -50.0, -20.0),
])
def test_a_kernel_before_the_end_of_the_blocking_kernel_is_early(early: tuple[str, float, float]) -> None:
    profile = read_profile(call(("own", 101, 131), before=(early,)), origin)
    assert profile is not None and profile.early == early[0]


@pytest.mark.parametrize("harmless", [
    ("fill", -50.0, -20.0),  # the harness poisons memory with PyTorch's kernels before the blocking kernel
    ("Memcpy HtoD (Pageable -> Device)", 50.0, 60.0),
    ("own", 97.0, 120.0),  # the blocks of the blocking kernel end one after the other
])
def test_harmless_activities_before_the_clock_starts_are_not_early(harmless: tuple[str, float, float]) -> None:
    profile = read_profile(call(("own", 101, 131), before=(harmless,)), origin)
    assert profile is not None and profile.early == ""


@pytest.mark.parametrize("late", [("own", 201.0, 205.0), ("gemm", 230.0, 240.0)])
def test_a_kernel_after_the_stop_is_late(late: tuple[str, float, float]) -> None:
    profile = read_profile(call(("own", 101, 131), late), origin)
    assert profile is not None and profile.late == late[0]


def test_the_copies_to_the_judge_are_not_late() -> None:
    profile = read_profile(call(("own", 101, 131)), origin)
    assert profile is not None and profile.late == ""


def test_activities_without_the_clocks_own_kernels_give_no_profile() -> None:
    assert has_clock(call(("own", 101, 131)))
    assert not has_clock([Activity("own", 0, 1)])
    assert read_profile([], origin) is None
    assert read_profile([Activity("own", 0, 1)], origin) is None
    assert read_profile([Activity("inlinebench_block", 0, 1), Activity("own", 1, 2)], origin) is None


def test_a_call_that_runs_no_kernel_has_an_own_share_of_zero() -> None:
    profile = read_profile(call(), origin)
    assert profile is not None and (profile.own_share, profile.busy_ms, profile.top) == (0.0, 0.0, ())


_row = st.tuples(st.sampled_from(["own", "gemm", "Memset"]), st.floats(100, 199), st.floats(0, 50))


@given(st.lists(_row, max_size=8))
def test_the_busy_time_is_between_the_longest_and_the_sum_of_the_durations(
    rows: list[tuple[str, float, float]]
) -> None:
    profile = read_profile(call(*((name, begin, begin + length) for name, begin, length in rows)), origin)
    assert profile is not None
    lengths = [length for _, _, length in rows]
    assert max(lengths, default=0) - 1e-6 <= profile.busy_ms * 1e3 <= sum(lengths) + 1e-6
    assert 0 <= profile.own_share <= 1 + 1e-9
