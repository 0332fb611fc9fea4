"""The tracer's library with a stand-in for CUPTI: real callbacks, real stacks, no GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
import torch

from inlinebench.compile import toolchain
from inlinebench.devices.cuda import tracer
from inlinebench.devices.cuda.tracer import CuptiTracer
from inlinebench.results.launches import Launched
from inlinebench.timing.trace import Launch

pytestmark = pytest.mark.nvcc

HERE = Path(__file__).parent
SOURCE = Path(tracer.__file__).with_name("gpu_trace.cpp")
CALLS = """
extern "C" void {called}(const char*);
extern "C" void {name}(const char* kernel) {{
  const char copy[64] = {{*kernel}};  // on the stack, as a kernel's arguments are, so the function stays on it as well
  {called}(*copy ? kernel : copy);
}}
"""
MANGLED, DEMANGLED = b"_Z5scalePKfPfi", "scale(float const*, float*, int)"
FROM_PYTHON = re.compile(r"(libffi|_ctypes|libpython|python).*")
RAW = 'extern "C" __global__ void scale_rows(float* x) { x[threadIdx.x] *= 2; }'
Requested = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def includes() -> list[Path]:
    home = toolchain.cuda_home()
    return [home / "include", home / "extras" / "CUPTI" / "include"]


def build(target: Path, source: Path, *more: str | Path) -> Path:
    """Builds a shared library that finds the libraries that it needs beside itself."""
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *(f"-I{each}" for each in includes())]
    names = [f"-Wl,-soname,{target.name}", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([toolchain.cxx(), *flags, source, "-o", target, *names, *more, "-ldl"], check=True)
    return target


def build_caller(target: Path, name: str, called: str, library: Path) -> Path:
    """Builds a library with a function that calls a function of another library."""
    source = target.with_suffix(".cpp")
    source.write_text(CALLS.format(name=name, called=called))
    return build(target, source, library)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the tracer, the stand-in, and libraries that launch kernels."""
    if not any((each / "cupti.h").exists() for each in includes()):
        pytest.skip("the toolkit lacks CUPTI's headers")
    folder = tmp_path_factory.mktemp("trace")
    cupti = build(folder / "libcupti.so.0", HERE / "fake_cupti.cpp")
    runtime = build_caller(folder / "libcudart.so.0", "runtime_launch", "fake_launch", cupti)
    build_caller(folder / "own.so", "launch", "runtime_launch", runtime)
    build_caller(folder / "libtorch_cuda.so", "launch", "runtime_launch", runtime)
    build(folder / "trace.so", SOURCE)
    return folder


@pytest.fixture
def cupti(folder: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(folder / "libcupti.so.0"))


@pytest.fixture
def tracer(folder: Path, cupti: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> CuptiTracer:
    monkeypatch.setattr(torch.version, "cuda", "0.0")  # so that CUPTI is `libcupti.so.0`, which is loaded
    return CuptiTracer(folder / "trace.so")


def test_activities_are_recorded_with_demangled_names(tracer: CuptiTracer, cupti: ctypes.CDLL) -> None:
    _, activities = tracer(lambda: cupti.fake_launch(MANGLED))
    assert [(each.name, each.end_us - each.begin_us) for each in activities] == [(DEMANGLED, 2.0)]


def test_how_a_kernel_was_launched_is_recorded(tracer: CuptiTracer, cupti: ctypes.CDLL) -> None:
    _, (activity,) = tracer(lambda: cupti.fake_launch(MANGLED))
    assert activity.launched == Launched(blocks=396, threads=256, registers=255, shared_bytes=3072)


def test_a_trace_is_complete_after_another_profiler_has_registered_its_callbacks(
    tracer: CuptiTracer, cupti: ctypes.CDLL
) -> None:
    others = Requested(lambda *_: None)
    cupti.cuptiActivityRegisterCallbacks(others, others)
    assert [each.name for each in tracer(lambda: cupti.fake_launch(b"kernel"))[1]] == ["kernel"]


def test_the_library_that_launches_a_kernel_is_found_behind_the_cuda_runtime(
    tracer: CuptiTracer, folder: Path
) -> None:
    own, library = (ctypes.CDLL(str(folder / name)) for name in ("own.so", "libtorch_cuda.so"))

    def work() -> str:
        own.launch(MANGLED)
        own.launch(MANGLED)
        library.launch(b"gemm")
        return "value"

    value, launches = tracer.launches(work)
    assert value == "value"
    assert launches == [
        Launch("gemm", str(folder / "libtorch_cuda.so")), Launch(DEMANGLED, str(folder / "own.so")),
    ]


def test_a_launch_through_ctypes_comes_from_python(tracer: CuptiTracer, cupti: ctypes.CDLL) -> None:
    _, (launch,) = tracer.launches(lambda: cupti.fake_launch(b"kernel"))
    assert FROM_PYTHON.fullmatch(Path(launch.library).name)


def test_launches_are_forgotten_by_the_next_trace_and_not_recorded_outside(
    tracer: CuptiTracer, cupti: ctypes.CDLL
) -> None:
    tracer.launches(lambda: cupti.fake_launch(b"first"))
    cupti.fake_launch(b"between")
    _, launches = tracer.launches(lambda: cupti.fake_launch(b"second"))
    assert [launch.kernel for launch in launches] == ["second"]


def test_launches_are_unknown_if_something_else_has_subscribed_to_cupti(
    tracer: CuptiTracer, cupti: ctypes.CDLL
) -> None:
    others, subscriber = Requested(lambda *_: None), ctypes.c_void_p()
    assert cupti.cuptiSubscribe(ctypes.byref(subscriber), others, None) == 0
    try:
        assert tracer.launches(lambda: 1) == (1, [])
    finally:
        cupti.cuptiUnsubscribe(subscriber)


def test_a_failing_call_ends_its_trace(tracer: CuptiTracer, cupti: ctypes.CDLL) -> None:
    with pytest.raises(ZeroDivisionError):
        tracer.launches(lambda: 1 // 0)
    assert tracer.launches(lambda: cupti.fake_launch(b"kernel"))[1] != []


@pytest.mark.gpu
def test_what_launches_a_kernel_is_found_on_a_gpu(folder: Path) -> None:
    x, tracer = torch.ones(64, 64, device="cuda"), CuptiTracer(folder / "trace.so")
    raw = torch.cuda._compile_kernel(RAW, "scale_rows")

    def work() -> None:
        raw(grid=(1, 1, 1), block=(64, 1, 1), args=[x])
        torch.mm(x, x).sin_()
        torch.cuda.synchronize()

    _, launches = tracer.launches(work)
    found = {launch.kernel: Path(launch.library).name for launch in launches}
    assert FROM_PYTHON.fullmatch(found.pop("scale_rows"))
    assert found and all(name.startswith(("libtorch", "libcublas")) for name in found.values())
