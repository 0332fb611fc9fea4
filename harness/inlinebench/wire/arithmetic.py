"""What judge, rehearsal and candidate must all do alike: the arithmetic they are set to, how they cast and seed."""

from __future__ import annotations

import random
from typing import Any

import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""By their names on the command line."""


def exact_arithmetic(*, tf32: bool) -> None:
    """Turns TF32 off for matrix products and for cuDNN (whose default is on), or leaves PyTorch's defaults.

    Through the older of torch's two APIs alone: solutions in the field set that one, and mixing both raises.
    """
    if tf32:
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def cast(value: Any, precision: str) -> Any:
    """A model, in place, or a value of any other kind, with what is floating-point in another precision."""
    dtype = DTYPES[precision]
    if isinstance(value, torch.nn.Module):
        for tensor in [*value.parameters(), *value.buffers()]:
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(dtype)
        return value
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def seed_all(seed: int) -> None:
    """Seeds every generator that a problem or a solution may draw from, as `torch.manual_seed` does and more.

    That function itself takes most of a millisecond, and keeps a traceback of each call for ever, for kinds of devices
    that aren't there.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        for generator in torch.cuda.default_generators:
            generator.manual_seed(seed)
    elif torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)  # for when it is started
    random.seed(seed)
    try:
        import numpy
    except ImportError:  # torch runs without NumPy, and so do files that don't use it
        return
    numpy.random.seed(seed % 2**32)
