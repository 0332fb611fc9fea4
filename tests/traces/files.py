"""Makes copies of the sets that tests change, with recorded inputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).parent
SEGMENTS = Path("definitions", "segment", "segment_sums.json")
SEGMENT_WORKLOADS = Path("workloads", "segment", "segment_sums.jsonl")
OFFSETS = Path("blob", "segment", "offsets.safetensors")
PAIRS = Path("pairs", "swap_halves", "definition.json")
_NAMES = {torch.int32: "I32", torch.float32: "F32", torch.bfloat16: "BF16", torch.bool: "BOOL", torch.int64: "I64",
          torch.float8_e4m3fn: "F8_E4M3"}


def copy_sets(folder: Path) -> Path:
    """Copies both sets into a folder, and adds the recorded inputs. Returns the folder."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "solutions"),
                    dirs_exist_ok=True)
    write_safetensors(folder / OFFSETS, {"short": torch.tensor([0, 2, 5, 9], dtype=torch.int32),
                                         "long": torch.tensor([0, 7, 40], dtype=torch.int32)})
    return folder


def write_safetensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes tensors in the format of safetensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, tensor in tensors.items():
        own = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edits the object of a JSON file, or that of the first line of a file of workloads."""
    first, *rest = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    found = json.loads(first)
    edit(found)
    path.write_text("\n".join([json.dumps(found), *rest]) + "\n")
