"""Makes "cuda" mean the CPU in Python, as in C++: in the candidate's process, before the solution is imported.

`x.device` stays a `torch.device` of type "cpu", because torch's own code needs a real device.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .conditionals import CUDA_ARCH

_CAPABILITY = (CUDA_ARCH // 100, CUDA_ARCH // 10 % 10)
_MEMORY = 8 << 30
_LONGEST_TEXT = 1000
_real_device = torch.device
_real_generator = torch.Generator
_real_fork_rng = torch.random.fork_rng
_real_load = torch.load
_state: dict[str, Any] = {}


def install(allocator: Path | None = None) -> None:
    """Makes torch treat "cuda" as the CPU in this process. Further calls do nothing.

    `allocator` is the library made by `toolchain.allocator_library`: every new CPU tensor is then guarded, and memory
    that was not written contains NaN patterns.
    """
    if _state:
        return
    if allocator is not None:
        _state["allocator"] = ctypes.CDLL(str(allocator))
    mode = _CudaIsCpu()
    _state["mode"] = mode
    mode.__enter__()  # type: ignore[no-untyped-call]
    torch.device = _Device  # type: ignore[misc, assignment]
    torch.Generator = _Generator  # type: ignore[misc, assignment]
    torch.load = _load
    torch.random.fork_rng = _fork_rng
    _patch_tensors()
    _patch_modules()
    _cover_threads()
    for name, value in _cuda_namespace().items():
        setattr(torch.cuda, name, value)


def set_block_order(runtime: Path, seed: int) -> None:
    """Sets the schedule of later launches: 0 is ascending, other seeds shuffle the blocks and reverse the threads."""
    ctypes.CDLL(str(runtime)).inlinebench_set_block_order(ctypes.c_uint(seed))


def launches(runtime: Path) -> int:
    """Returns how many kernels this process has launched."""
    return int(ctypes.CDLL(str(runtime)).inlinebench_launches())


def refused_launch(runtime: Path) -> str:
    """Returns the kernel, configuration and limit of the first launch since the last call that a GPU would refuse, or
    ""."""
    text = ctypes.create_string_buffer(_LONGEST_TEXT)
    ctypes.CDLL(str(runtime)).inlinebench_take_refused_launch(text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace")


def on_cpu(value: Any) -> Any:
    """Replaces a CUDA device by the CPU, if `value` is a device or the name of one. Returns other values unchanged."""
    if isinstance(value, str):
        return "cpu" if value == "cuda" or value.startswith("cuda:") else value
    if isinstance(value, _real_device):
        return _real_device("cpu") if value.type == "cuda" else value
    return value


class _CudaIsCpu(TorchFunctionMode):
    """Intercepts every call of a torch function or tensor method, including factory functions."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False  # pinning needs a driver
        return func(*(on_cpu(argument) for argument in args), **kwargs)


def _cover_threads() -> None:
    """Enters the mode in each thread that a solution starts, because modes are per thread."""
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


def _patch_tensors() -> None:
    tensor: Any = torch.Tensor
    tensor.cuda = lambda self, *_args, **_kwargs: self
    tensor.pin_memory = lambda self, *_args, **_kwargs: self
    tensor.is_pinned = lambda self, *_args, **_kwargs: True
    tensor.record_stream = lambda self, _stream: None
    tensor.is_cuda = property(lambda self: True)
    tensor.get_device = lambda self: 0


def _patch_modules() -> None:
    module: Any = torch.nn.Module
    real_to = module.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        return real_to(self, *(on_cpu(argument) for argument in args), **kwargs)

    module.cuda = lambda self, device=None: self
    module.to = to


class Stream:
    """A stream. Work that is queued on it has already finished."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = _real_device("cpu")
        self.device_index = 0
        self.cuda_stream = 0
        self.stream_id = 0
        self.priority = priority

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0

    def query(self) -> bool:
        """Returns True, because all work has finished."""
        return True

    def synchronize(self) -> None:
        """Does nothing."""

    def wait_stream(self, _stream: Any) -> None:
        """Does nothing."""

    def wait_event(self, _event: Any) -> None:
        """Does nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records the event and returns it."""
        event = event or Event()
        event.record()
        return event


class Event:
    """An event, which holds the time of its recording."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._at = 0.0

    def record(self, _stream: Any = None) -> None:
        """Records the current time."""
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Returns the milliseconds from this event to `end`."""
        return (end._at - self._at) * 1e3

    def query(self) -> bool:
        """Returns True, because all work has finished."""
        return True

    def wait(self, _stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""


@contextlib.contextmanager
def _nothing(*_args: Any, **_kwargs: Any) -> Iterator[None]:
    yield


class _DeviceContext(contextlib.AbstractContextManager[None]):
    """Supports `with torch.cuda.device(0):`."""

    def __init__(self, *_args: Any) -> None:
        self.idx = 0

    def __exit__(self, *_: object) -> None:
        return None


class CUDAGraph:
    """Not supported, because a graph replays work that ran only once here."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError("inlinebench: unsupported on the CPU (run with a CUDA device): CUDA graphs")


def _properties(_device: Any = None) -> SimpleNamespace:
    """Returns the same properties as cudaGetDeviceProperties."""
    return SimpleNamespace(
        name="CUDA on the CPU (inlinebench)",
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=_MEMORY,
        multi_processor_count=8,
        is_integrated=0,
        is_multi_gpu_board=0,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        warp_size=32,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=227 * 1024,
        shared_memory_per_multiprocessor=228 * 1024,
        L2_cache_size=4 << 20,
        gcnArchName="",
        clock_rate=1000000,
        memory_clock_rate=1000000,
        memory_bus_width=256,
    )


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_args, **_kwargs: value


def _cuda_namespace() -> dict[str, Any]:
    """Returns the replacements of attributes of `torch.cuda`."""
    capability = f"sm_{_CAPABILITY[0]}{_CAPABILITY[1]}"
    return {
        # Each name has its own function, because torch's compiler refuses two names for one object.
        **{name: _constant(None) for name in _DO_NOTHING},
        **{name: _constant(0) for name in _COUNT_NOTHING},
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "graph": CUDAGraph,
        "stream": _nothing,
        "StreamContext": _nothing,
        "device": _DeviceContext,
        "device_of": _DeviceContext,
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "is_bf16_supported": _constant(True),
        "is_current_stream_capturing": _constant(False),
        "_is_in_bad_fork": _constant(False),
        "can_device_access_peer": _constant(True),
        "device_count": _constant(1),
        "current_device": _constant(0),
        "current_stream": lambda *_: Stream(),
        "default_stream": lambda *_: Stream(),
        "get_device_name": lambda *_: _properties().name,
        "get_device_properties": _properties,
        "get_device_capability": _constant(_CAPABILITY),
        "get_arch_list": _constant([capability]),
        "mem_get_info": _constant((_MEMORY, _MEMORY)),
        "memory_stats": _constant({}),
        "memory_summary": _constant(""),
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda *_, **__: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
    }


_DO_NOTHING = [
    "init",
    "_lazy_init",
    "_lazy_call",
    "_sleep",
    "set_device",
    "set_stream",
    "synchronize",
    "empty_cache",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
    "set_per_process_memory_fraction",
]
_COUNT_NOTHING = ["memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "utilization"]
