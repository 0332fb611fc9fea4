"""Encodes values for a candidate."""

from __future__ import annotations

import base64
import pickle
from typing import Any


def pack(value: Any) -> str:
    """Pickles a value and returns it as text. A candidate may unpickle it, because it trusts the judge."""
    return base64.b64encode(pickle.dumps(value)).decode()
