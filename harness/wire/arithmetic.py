"""What judge, rehearsal and candidate must all do alike: the arithmetic they are set to, and how they seed."""

from __future__ import annotations

import random

import torch


def exact_arithmetic(*, tf32: bool) -> None:
    """Turns TF32 off for matrix products and for cuDNN (whose default is on), or leaves PyTorch's defaults.

    Through the older of torch's two APIs alone: solutions in the field set that one, and mixing both raises.
    """
    if tf32:
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def seed_all(seed: int) -> None:
    """Seeds every generator that a problem or a solution may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    try:
        import numpy
    except ImportError:  # torch runs without NumPy, and so do files that don't use it
        return
    numpy.random.seed(seed % 2**32)
