"""What cheats share that lie about their times, or behave otherwise in held calls.

A held call differs from others in the request that asks for it and in the functions that run. So a solution can tell
them apart, and nothing may depend on its not knowing.
"""

import ctypes
import sys
from dataclasses import replace
from typing import Any

import torch
from torch.utils.cpp_extension import load_inline

from inlinebench.devices.cuda.clock import HELD_MS, GpuClock
from inlinebench.devices.cuda.device_memory import Exporter
from inlinebench.devices.cuda.runtime import cuda_runtime
from inlinebench.timing.call import Sample
from inlinebench.wire.channel import Channel
from inlinebench.wire.locations import Location, Places

__all__ = (
    "HELD_MS", "Exporter", "GpuClock", "Location", "Places", "Sample", "SideStream", "checked", "cuda_runtime",
    "driver", "holding", "in_held_call", "report_a_share",
)
"""The names of the harness that cheats replace are imported in this module only."""

CPP_SOURCE = r"""
void spin_if_negative(const at::Tensor& values, int64_t cycles);
void spin_everywhere(int64_t blocks, int64_t cycles);
void scale_when_written(const at::Tensor& diagonal, at::Tensor B, at::Tensor out, int64_t cycles);
"""

CUDA_SOURCE = r"""
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ void spin_for(int64_t cycles) {
  const int64_t begin = clock64();
  while (clock64() - begin < cycles) {}
}

__global__ void spin_if_negative_kernel(const float* values, int64_t count, int64_t cycles) {
  bool negative = false;
  for (int64_t i = 0; i < count; ++i) negative |= values[i] < 0.f;
  if (negative) spin_for(cycles);
}

__global__ void spin_everywhere_kernel(int64_t cycles) { spin_for(cycles); }

// Waits until the last value of B is not NaN, but not for more than 1000 million cycles. Then it takes so many cycles.
__global__ void scale_when_written_kernel(const float* diagonal, volatile const float* B, float* out, int64_t columns,
                                          int64_t count, int64_t cycles) {
  const int64_t begin = clock64();
  while (isnan(B[count - 1]) && clock64() - begin < 1000000000) {}
  spin_for(cycles);
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = diagonal[i / columns] * B[i];
  }
}

// Keeps one SM busy if one of a few values is negative.
void spin_if_negative(const at::Tensor& values, int64_t cycles) {
  spin_if_negative_kernel<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(values.const_data_ptr<float>(),
                                                                         values.numel(), cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Keeps so many blocks of 1024 threads busy.
void spin_everywhere(int64_t blocks, int64_t cycles) {
  spin_everywhere_kernel<<<static_cast<unsigned>(blocks), 1024, 0, at::cuda::getCurrentCUDAStream()>>>(cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// diag(diagonal) @ B into out as soon as B is written. Its blocks fit on any GPU at once.
void scale_when_written(const at::Tensor& diagonal, at::Tensor B, at::Tensor out, int64_t cycles) {
  scale_when_written_kernel<<<32, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), B.size(1),
      B.numel(), cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

holding = load_inline(
    name="cheats_holding",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["spin_if_negative", "spin_everywhere", "scale_when_written"],
)

plain_drain, plain_send = GpuClock.drain, Channel.send


def report_a_share(share: float) -> None:
    """Reports this share of each time, and leaves out of profiles what takes the rest."""

    def drain(self: GpuClock) -> Sample:
        sample = plain_drain(self)
        return replace(sample, device_ms=share * sample.device_ms)

    def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
        if frame.get("activities"):
            frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
        plain_send(self, frame, *timeout)

    GpuClock.drain, Channel.send = drain, send  # type: ignore[method-assign]


def in_held_call() -> bool:
    """Whether a function of the harness that holds calls is running."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "hold":
            return True
        frame = frame.f_back
    return False


def driver() -> ctypes.CDLL:
    """CUDA's driver."""
    return ctypes.CDLL("libcuda.so.1")


def checked(status: int) -> None:
    """Raises OSError if a function of the driver has failed."""
    if status:
        raise OSError(status, "CUDA error")


class SideStream:
    """A stream that is created when it is first used, since constructors may run without a GPU."""

    def __init__(self, priority: int = 0) -> None:
        self._priority = priority
        self._stream: torch.cuda.Stream | None = None

    def __call__(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream(priority=self._priority)
        return self._stream
