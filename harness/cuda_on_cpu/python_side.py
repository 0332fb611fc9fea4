"""Makes "cuda" mean the CPU in Python, as in C++.

`x.device` stays a `torch.device` of type "cpu", because torch's own code needs a real device.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .cuda_namespace import GRAPHS, cuda_namespace
from .streams import STREAMS

_real_device = torch.device
_real_generator = torch.Generator
_real_fork_rng = torch.random.fork_rng
_real_load = torch.load
_state: dict[str, Any] = {}


def install(allocator: Path | None = None) -> None:
    """Makes torch treat "cuda" as the CPU in this process. Further calls do nothing.

    `allocator` is the library made by `allocator_library`: every new CPU tensor is then guarded, and memory that was
    not written contains NaN patterns.
    """
    if _state:
        return
    if allocator is not None:
        _state["allocator"] = ctypes.CDLL(str(allocator))
        STREAMS.use(_state["allocator"])  # it is linked with the runtime
    mode = _CudaIsCpu()
    _state["mode"] = mode
    mode.__enter__()  # type: ignore[no-untyped-call]
    torch.device = _Device  # type: ignore[misc, assignment]
    torch.Generator = _Generator  # type: ignore[misc, assignment]
    torch.load = _load
    torch.random.fork_rng = _fork_rng
    _patch_modules()
    _cover_threads()
    for name, value in cuda_namespace().items():
        setattr(torch.cuda, name, value)
    for name, value in GRAPHS.items():
        setattr(torch.cuda.graphs, name, value)


@contextlib.contextmanager
def cuda_is_cpu() -> Iterator[None]:
    """Makes torch treat "cuda" as the CPU in this thread, in a process whose other code needs torch as it is."""
    namespace = cuda_namespace()
    real = {name: vars(torch.cuda)[name] for name in namespace if name in vars(torch.cuda)}
    for name, value in namespace.items():
        setattr(torch.cuda, name, value)
    torch.Generator = _Generator  # type: ignore[misc, assignment]
    try:
        with _CudaIsCpu():
            yield
    finally:
        torch.Generator = _real_generator  # type: ignore[misc]
        for name in namespace:
            if name in real:
                setattr(torch.cuda, name, real[name])
            else:
                delattr(torch.cuda, name)


def on_cpu(value: Any) -> Any:
    """Replaces a CUDA device by the CPU, if `value` is a device or the name of one. Returns other values unchanged."""
    if isinstance(value, str):
        return "cpu" if value == "cuda" or value.startswith("cuda:") else value
    if isinstance(value, _real_device):
        return _real_device("cpu") if value.type == "cuda" else value
    return value


_OF_TENSORS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: lambda tensor, *_: tensor,
    torch.Tensor.pin_memory: lambda tensor, *_: tensor,
    torch.Tensor.is_pinned: lambda *_: True,
    torch.Tensor.record_stream: lambda *_: None,
    torch.Tensor.get_device: lambda _: 0,
    vars(torch._C.TensorBase)["is_cuda"].__get__: lambda *_: True,
}
"""The results of methods and properties of tensors."""


class _CudaIsCpu(TorchFunctionMode):
    """Intercepts every call of a torch function or tensor method, including factory functions."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _OF_TENSORS:
            return _OF_TENSORS[func](*args)
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False  # pinning needs a driver
        return func(*(on_cpu(argument) for argument in args), **kwargs)


def _cover_threads() -> None:
    """Enters the mode in each thread that is started, because modes are per thread."""
    thread: Any = threading.Thread
    real_run = thread._bootstrap_inner

    def run(self: Any) -> None:
        with _CudaIsCpu():
            real_run(self)

    thread._bootstrap_inner = run


def _device_argument(device: Any) -> Any:
    """Like `on_cpu`, but an integer is the index of a CUDA device."""
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) else on_cpu(device)


class _DeviceType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_device)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):
            return _real_device("cpu")
        return on_cpu(_real_device(*args, **kwargs))


class _Device(metaclass=_DeviceType):
    """Replaces `torch.device`: makes real devices, but never a CUDA device."""


class _GeneratorType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_generator)

    def __call__(cls, device: Any = None) -> Any:
        return _real_generator()


class _Generator(metaclass=_GeneratorType):
    """Replaces `torch.Generator`: makes real generators, on the CPU."""


@contextlib.contextmanager
def _fork_rng(devices: Any = None, enabled: bool = True, *_args: Any, **_kwargs: Any) -> Iterator[None]:
    """Replaces `torch.random.fork_rng`, with the CPU as the only device."""
    with _real_fork_rng(devices=[], enabled=enabled):
        yield


def _load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Replaces `torch.load`: loads onto the CPU unless `map_location` says otherwise."""
    return _real_load(f, on_cpu(map_location) or "cpu", *args, **kwargs)


def _patch_modules() -> None:
    module: Any = torch.nn.Module
    real_to = module.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        return real_to(self, *(on_cpu(argument) for argument in args), **kwargs)

    module.cuda = lambda self, device=None: self
    module.to = to
