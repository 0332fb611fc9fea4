"""Evaluates the references of a set of FlashInfer-Trace against themselves, each at one small workload.

    python benchmarks/traces.py SET [--most-elements N] [-- further arguments of run_eval.py]

The workloads are made here, because those of the set name recorded inputs that are downloaded separately, and have
sizes for a GPU. Constant axes keep their values, variable ones are small. Floating-point inputs are random; indices,
offsets and probabilities are recorded, with values that make sense by the names that the set uses. The set is not part
of this repository.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.catalog.traces.definition import Definition, Tensor, read_definition  # noqa: E402
from inlinebench.catalog.traces.fields import DefinitionError  # noqa: E402
from inlinebench.catalog.traces.layout import definitions, workloads_of  # noqa: E402
from inlinebench.foreign import first_line  # noqa: E402
from inlinebench.results.jsonl import read  # noqa: E402
from inlinebench.results.result import Verdict  # noqa: E402
from tests.traces.files import write_safetensors  # noqa: E402

SIZES = {"batch_size": 2, "num_seqs": 2, "len_indptr": 3, "len_cu_seqlens": 3, "num_kv_indices": 8, "total_kv": 8,
         "num_pages": 64, "max_num_pages": 33, "num_kv_heads": 2, "num_qo_heads": 4, "max_seq_len": 32}
"""The values of variable axes: two sequences with 1 and 2 queries, and 3 and 5 keys or pages. All others are 3."""
QUERIES, KEYS = [0, 1, 3], [0, 3, 8]
SCALARS = {"int32": 0, "int64": 0, "float32": 0.125}


def main(arguments: Sequence[str]) -> int:
    """Evaluates all references and prints what did not pass. Returns 1 if a reference fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, help="folder with definitions")
    parser.add_argument("--most-elements", type=int, default=1 << 27, help="the most elements of inputs to evaluate")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given, more = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    with tempfile.TemporaryDirectory(prefix="inlinebench-traces-") as scratch:
        count = sum(write(path, given.set.resolve(), Path(scratch), given.most_elements)
                    for path in sorted(definitions(given.set.resolve())))
        out = Path(scratch) / "results.jsonl"
        if not count:
            return 0
        subprocess.run([sys.executable, str(ROOT / "run_eval.py"), "*/@reference", "--problems", scratch, "--check",
                        "--shape", "full", "--allow-library", "--out", str(out), *more], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=False)
        results = list(read(out))
    for result in results:
        if result.verdict is not Verdict.PASSED:
            print(f"{result.problem}: {result.verdict}: {first_line(result.reason)}")
    print(f"{count} evaluated: ", Counter(str(result.verdict) for result in results))
    return int(any(result.verdict not in (Verdict.PASSED, Verdict.SKIPPED) for result in results))


def write(path: Path, folder: Path, scratch: Path, most: int) -> bool:
    """Copies a definition, and writes a workload for it. Returns whether it can be evaluated, or prints why not."""
    try:
        definition = read_definition(path)
    except DefinitionError as error:
        print(error)
        return False
    sizes = {**definition.sizes, **{name: SIZES.get(name, 3) for name in definition.variables}}
    elements = sum(math.prod(_shape(each, sizes)) for each in definition.inputs if each.shape is not None)
    if elements > most:
        print(f"{definition.name}: not evaluated: its inputs have {elements / 1e6:.0f} million elements")
        return False
    target = scratch / path.relative_to(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    values = _recorded(definition, sizes)
    if values:
        write_safetensors(target.with_suffix(".safetensors"), values)
    line = {"uuid": "made", "axes": {name: sizes[name] for name in definition.variables},
            "inputs": {each.name: _source(each, each.name in values, target) for each in definition.inputs}}
    workloads_of(target).parent.mkdir(parents=True, exist_ok=True)
    workloads_of(target).write_text(json.dumps(line))
    return True


def _shape(tensor: Tensor, sizes: Mapping[str, int]) -> list[int]:
    return [sizes[axis] if axis in sizes else int(axis) for axis in tensor.shape or ()]


def _source(tensor: Tensor, is_recorded: bool, target: Path) -> dict[str, Any]:
    if tensor.shape is None:
        return {"type": "scalar", "value": SCALARS[tensor.dtype]}
    if is_recorded:
        return {"type": "safetensors", "path": target.with_suffix(".safetensors").name, "tensor_key": tensor.name}
    return {"type": "random"}


def _recorded(definition: Definition, sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Returns the inputs of a definition whose values have a meaning."""
    found = {}
    for tensor in definition.inputs:
        value = _meaningful(tensor.name, _shape(tensor, sizes), sizes)
        if tensor.shape is not None and value is not None:
            found[tensor.name] = value.to(getattr(torch, tensor.dtype))
    return found


def _meaningful(name: str, shape: list[int], sizes: Mapping[str, int]) -> torch.Tensor | None:
    pages, page = sizes.get("num_pages", 1), sizes.get("page_size", 1)
    bounds = {"kv_indices": pages, "block_table": pages, "sparse_indices": pages * page, "positions": 32, "topk_ids": 8}
    if name.endswith("indptr") or name == "cu_seqlens":
        return torch.tensor(KEYS if name.startswith("kv") else QUERIES)
    if name in bounds:
        return torch.randint(0, bounds[name], shape)
    if name in ("top_k", "seq_lens"):
        return torch.randint(1, 64, shape)
    if name == "kv_last_page_len":
        return torch.full(shape, page // 2 + 1)
    if name.endswith("state_indices") or name == "state_batch_indices":
        return torch.arange(math.prod(shape)).reshape(shape)
    return torch.rand(shape) * 0.8 + 0.1 if name == "top_p" else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
