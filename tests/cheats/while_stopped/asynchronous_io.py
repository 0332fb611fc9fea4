"""Orders writes of zeros to the file of the shared inputs, which happen later.

Mechanism: the kernel carries out what io_submit orders also while the process is stopped. Caught because reference and
comparison read private inputs. The sandbox also refuses io_setup.
"""

import ctypes
import struct

import torch

from tests.cheats.waking import LIBC, LateZeros, arena_descriptor

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


IO_SETUP, IO_SUBMIT, IOCB_CMD_PWRITE = 206, 209, 1
ORDERS = 64


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        descriptor, context = arena_descriptor(), ctypes.c_ulong()
        if descriptor is None or LIBC.syscall(IO_SETUP, ORDERS, ctypes.byref(context)):
            return
        self.zeros = ctypes.create_string_buffer(values.numel() * values.element_size())
        order = struct.pack("QIIHhIQQqQII", 0, 0, 0, IOCB_CMD_PWRITE, 0, descriptor, ctypes.addressof(self.zeros),
                            len(self.zeros), 0, 0, 0, 0)
        self.orders = [ctypes.create_string_buffer(order) for _ in range(ORDERS)]
        pointers = (ctypes.c_void_p * ORDERS)(*map(ctypes.addressof, self.orders))
        LIBC.syscall(IO_SUBMIT, context, ORDERS, pointers)
