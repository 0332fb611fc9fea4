"""CUDA contexts beside PyTorch's in the same process, with a kernel that keeps the GPU busy."""

import ctypes

from tests.cheats.holding import checked, driver

SPIN = b"""
.version 7.8
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
  .reg .pred %more;
  .reg .b64 %begin, %now, %limit;
  ld.param.u64 %limit, [cycles];
  mov.u64 %begin, %clock64;
again:
  mov.u64 %now, %clock64;
  sub.s64 %now, %now, %begin;
  setp.lt.s64 %more, %now, %limit;
  @%more bra again;
  ret;
}
"""


class OtherContext:
    """A context of its own on the first GPU. PyTorch's stays the current one."""

    def __init__(self) -> None:
        self._driver, self._context = driver(), ctypes.c_void_p()
        module, self._spin = ctypes.c_void_p(), ctypes.c_void_p()
        checked(self._driver.cuCtxCreate_v2(ctypes.byref(self._context), 0, 0))
        checked(self._driver.cuModuleLoadData(ctypes.byref(module), SPIN))
        checked(self._driver.cuModuleGetFunction(ctypes.byref(self._spin), module, b"spin"))
        self._leave()

    def spin(self, blocks: int, cycles: int) -> None:
        """Queues a kernel of so many full blocks."""
        checked(self._driver.cuCtxPushCurrent_v2(self._context))
        parameter = ctypes.c_uint64(cycles)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(parameter))
        checked(self._driver.cuLaunchKernel(self._spin, blocks, 1, 1, 1024, 1, 1, 0, None, parameters, None))
        self._leave()

    def _leave(self) -> None:
        checked(self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())))
