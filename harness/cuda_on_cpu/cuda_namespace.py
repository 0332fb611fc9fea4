"""What replaces the attributes of `torch.cuda` where "cuda" means the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from .conditionals import CUDA_ARCH
from .streams import STREAMS, Event, ExternalStream, Stream, StreamContext, set_stream, stream_context

_CAPABILITY = (CUDA_ARCH // 100, CUDA_ARCH // 10 % 10)
_MEMORY = 8 << 30


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


GRAPHS = {name: CUDAGraph for name in ("CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables")}
"""The names of CUDA graphs in `torch.cuda` and in `torch.cuda.graphs`."""


def _properties(_device: Any = None) -> SimpleNamespace:
    """Returns the same properties as cudaGetDeviceProperties."""
    return SimpleNamespace(
        name="CUDA on the CPU",
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


def cuda_namespace() -> dict[str, Any]:
    """Returns the replacements of attributes of `torch.cuda`."""
    capability = f"sm_{_CAPABILITY[0]}{_CAPABILITY[1]}"
    return {
        # Each name has its own function, because torch's compiler refuses two names for one object.
        **{name: _constant(None) for name in _DO_NOTHING},
        **{name: _constant(0) for name in _COUNT_NOTHING},
        "Stream": Stream,
        "ExternalStream": ExternalStream,
        "Event": Event,
        **GRAPHS,
        "stream": stream_context,
        "set_stream": set_stream,
        "synchronize": lambda *_: STREAMS.synchronize_device(),
        "StreamContext": StreamContext,
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
        "current_stream": lambda *_: Stream(number=STREAMS.current()),
        "default_stream": lambda *_: Stream(number=0),
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
