"""Arithmetic settings, casts and seeds that judge, probe and candidate share."""

from __future__ import annotations

import random
from typing import Any

import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Dtypes by their names on the command line."""


def exact_arithmetic(*, tf32: bool) -> None:
    """Turns TF32 off for matrix products and cuDNN (which uses it by default). With `tf32`, keeps PyTorch's defaults.

    Uses only the older of torch's two APIs: existing solutions set that one, and mixing both raises.
    """
    if tf32:
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def cast(value: Any, precision: str) -> Any:
    """Casts the floating-point tensors of a model, in place, or a floating-point tensor. Returns other values
    unchanged.
    """
    dtype = DTYPES[precision]
    if isinstance(value, torch.nn.Module):
        for tensor in [*value.parameters(), *value.buffers()]:
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(dtype)
        return value
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def seed_all(seed: int) -> None:
    """Seeds every generator that a problem or a solution may draw from: those of `torch.manual_seed`, Python and NumPy.

    `torch.manual_seed` itself takes most of a millisecond, and keeps a traceback of each call forever for each kind of
    device that the machine lacks.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        for generator in torch.cuda.default_generators:
            generator.manual_seed(seed)
    elif torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)  # takes effect when CUDA starts
    random.seed(seed)
    try:
        import numpy
    except ImportError:  # torch works without NumPy, and so do problems that do not use it
        return
    numpy.random.seed(seed % 2**32)
