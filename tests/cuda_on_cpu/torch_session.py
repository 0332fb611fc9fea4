"""A simplified candidate: python -m ...torch_session MODULE ALLOCATOR. Runs assertions and prints "done"."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch

from cuda_on_cpu import install


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("torch_kernels", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _raises(text: str, call: Any) -> None:
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


def check_python() -> None:
    """Checks that "cuda" in Python means the CPU."""
    x = torch.randn(3, 4, device="cuda")
    assert x.device.type == "cpu" and x.is_cuda and x.cuda() is x and x.get_device() == 0
    assert x.to("cuda:0").device == torch.device("cuda") == x.device and isinstance(x.device, torch.device)
    layer = torch.nn.Linear(4, 5, device="cuda").to("cuda").cuda().to(torch.device("cuda", 0), torch.float16)
    assert layer.weight.dtype == torch.float16 and layer.weight.is_cuda
    for made in (
        torch.zeros(2, device=0),
        torch.full((2,), 1, device=x.device),
        x.new_zeros(2, device="cuda"),
        torch.tensor([1], device="cuda"),
    ):
        assert made.device.type == "cpu"
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert (
        torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_properties(0).multi_processor_count > 0
    )
    event: Any = torch.cuda.Event
    start, end = event(enable_timing=True), event(enable_timing=True)
    start.record()
    with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.device(0):
        torch.cuda.current_stream().synchronize()
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side != main and torch.cuda.default_stream() == main
    assert torch.cuda.current_stream() == main and torch.cuda.ExternalStream(side.cuda_stream) == side
    main.wait_stream(side)
    side.wait_event(main.record_event())
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    with torch.random.fork_rng():
        torch.rand(2, generator=torch.Generator(device="cuda").manual_seed(1))
    torch.cuda.empty_cache()
    graphs: Any = torch.cuda.graphs
    for make in (torch.cuda.CUDAGraph, graphs.CUDAGraph, lambda: graphs.graph(None), torch.cuda.graph_pool_handle,
                 lambda: graphs.make_graphed_callables(torch.nn.Linear(2, 2), (x,))):
        _raises("inlinebench: unsupported on the CPU (run with a CUDA device): CUDA graphs", make)
    assert repr(x).startswith("tensor(") and torch.isnan(torch.empty(5, device="cuda")).all()


def check_kernels(module: Any) -> None:
    """Checks that kernels with torch bindings give torch's results, and that bugs are errors."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.randn(33, 57, device="cuda").to(dtype)
        torch.testing.assert_close(module.scale(x, 3.0), x * 3)
    x = torch.randn(70, 13, device="cuda")
    torch.testing.assert_close(module.row_sums(x), x.sum(1))
    torch.testing.assert_close(module.row_sums(x.t()), x.sum(0))
    h = torch.randn(99).half()
    torch.testing.assert_close(module.add_one(h), h + 1)
    assert torch.isnan(module.uninitialised(10)).all()
    _raises("must be contiguous", lambda: module.scale(x.t(), 1.0))
    _raises("invalid configuration argument", lambda: module.bad_launch(x))
    _raises("inlinebench: barrier divergence at diverge_kernel, line", lambda: module.diverge(torch.zeros(64)))
    for n in (1, 37, 1001, 1023):
        _raises("inlinebench: out of bounds access in kernel overrun_kernel", lambda n=n: module.overrun(n))


if __name__ == "__main__":
    install(Path(sys.argv[2]))
    check_python()
    loaded = _load(Path(sys.argv[1]))
    check_kernels(loaded)
    print("done", flush=True)
    loaded.overrun(1024)
