"""The problem that a definition becomes: what the catalog reads in it, and the inputs and outputs that it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.catalog import Problem, read, read_problem
from inlinebench.catalog.traces import read_trace
from inlinebench.problem.problem_file import ProblemError, construct, inputs, load
from inlinebench.problem.shapes.ranges import Range

from ...traces.files import PAIRS, SEGMENT_WORKLOADS, SEGMENTS, change, copy_sets

SMALL_OFFSETS = ("./blob/segment/offsets.safetensors", "short")


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    return copy_sets(tmp_path)


def problem(path: Path) -> Problem:
    found = read_problem(path)
    assert not found.error
    return found


def at(path: Path, name: str) -> dict[str, Any]:
    return next(dict(each.constants) for each in problem(path).workloads if each.name == name)


def test_the_catalog_reads_workloads_shapes_and_tags(sets: Path) -> None:
    found = problem(sets / SEGMENTS)
    assert (found.name, found.shapes, found.tags) == ("segment_sums", ("small",), ("segment", "ragged"))
    assert found.constants == ("columns", "rows", "segments", "len_offsets", "offsets", "scale")
    assert [each.name for each in found.workloads] == ["3f9a1c02", "7b00d4e1"]
    assert at(sets / SEGMENTS, "3f9a1c02") == {
        "rows": 9, "segments": 3, "len_offsets": 4, "offsets": SMALL_OFFSETS, "scale": 0.5}


def test_drawn_sizes_are_those_of_variable_axes_and_of_none_with_recorded_inputs(sets: Path) -> None:
    assert problem(sets / PAIRS).ranges == {"rows": Range(1, 64), "chosen": Range(1, 33)}
    assert problem(sets / SEGMENTS).ranges == {}


def test_the_file_as_written_is_the_largest_workload_and_small_is_the_smallest(sets: Path) -> None:
    x, offsets, scale = inputs(load(sets / SEGMENTS))
    assert (x.shape, offsets.tolist(), scale) == ((40, 24), [0, 7, 40], -2)
    x, offsets, scale = inputs(load(sets / SEGMENTS, "small"))
    assert (x.shape, offsets.tolist(), scale) == ((9, 24), [0, 2, 5, 9], 0.5)


def test_outputs_are_in_the_order_of_the_definition(sets: Path) -> None:
    module = load(sets / SEGMENTS)
    sums, largest = construct(module)(*inputs(module))
    assert (sums.shape, largest.shape) == ((2, 24), (2,))


def test_a_single_output_is_the_tensor_itself(sets: Path) -> None:
    module = load(sets / PAIRS, constants=at(sets / PAIRS, "b7d2"))
    x, indices = inputs(module)
    assert (x.shape, indices.shape, module.half) == ((64, 32), (33,), 16)
    assert construct(module)(x, indices).shape == (33, 32)


def test_the_function_that_draws_inputs_may_be_called_get_inputs(sets: Path) -> None:
    path = sets / PAIRS
    path.write_text(path.read_text().replace("def draw(", "def get_inputs(").replace('"draw"', '"get_inputs"'))
    assert inputs(load(path))[0].shape == (64, 32)


def test_another_number_of_outputs_is_an_error(sets: Path) -> None:
    change(sets / PAIRS, lambda given: given["outputs"].update(more={"shape": [], "dtype": "int32"}))
    module = load(sets / PAIRS)
    with pytest.raises(ValueError, match="run returns 1 outputs; the definition has swapped, more"):
        construct(module)(*inputs(module))


@pytest.mark.parametrize(("dtype", "low", "high"), [
    ("float64", -8, 8), ("float32", -8, 8), ("float16", -8, 8), ("bfloat16", -8, 8), ("float8_e4m3fn", -2, 2),
    ("float8_e5m2", -2, 2), ("int64", -1024, 1023), ("int32", -1024, 1023), ("int16", -1024, 1023),
    ("int8", -128, 127), ("bool", 0, 1),
])
def test_random_inputs_of_every_dtype(sets: Path, dtype: str, low: int, high: int) -> None:
    change(sets / SEGMENTS, lambda given: given["inputs"]["x"].update(dtype=dtype, shape=["rows", "7", "columns"]))
    x = inputs(load(sets / SEGMENTS))[0]
    assert x.dtype is getattr(torch, dtype) and x.shape == (40, 7, 24)
    assert low <= x.double().min() < x.double().max() <= high


def test_scalars_without_a_value_are_drawn_and_tensors_without_axes_have_no_dimension(sets: Path) -> None:
    change(sets / SEGMENTS, lambda given: given["inputs"]["x"].update(shape=[]))
    change(sets / SEGMENT_WORKLOADS, lambda given: given["workload"]["inputs"].pop("scale"))
    x, _, scale = inputs(load(sets / SEGMENTS, constants=at(sets / SEGMENTS, "3f9a1c02")))
    assert x.shape == () and isinstance(scale, float)
    assert inputs(load(sets / SEGMENTS))[2] == -2  # the other workload still has its value


def test_inputs_can_have_the_names_of_keys_of_a_workload(sets: Path) -> None:
    for path in (sets / SEGMENTS, sets / SEGMENT_WORKLOADS):
        text = path.read_text().replace('"offsets":', '"weight":').replace('"scale":', '"tol":')
        path.write_text(text.replace("offsets[-1]", "weight[-1]"))
    _, weight, tol = inputs(load(sets / SEGMENTS, constants=at(sets / SEGMENTS, "3f9a1c02")))
    assert (weight.tolist(), tol) == ([0, 2, 5, 9], 0.5)


def test_probabilities_to_sample_from_add_up_to_one(sets: Path) -> None:
    def edit(given: dict[str, Any]) -> None:
        given["inputs"] = {"probs": given["inputs"].pop("x"), **given["inputs"]}
        given.update(op_type="sampling", reference="def run(probs, offsets, scale): ...")

    change(sets / SEGMENTS, edit)
    workloads = sets / SEGMENT_WORKLOADS
    workloads.write_text(workloads.read_text().replace('"x"', '"probs"'))
    torch.testing.assert_close(inputs(load(sets / SEGMENTS))[0].sum(-1), torch.ones(40))


def test_a_constraint_that_fails_is_quoted(sets: Path) -> None:
    change(sets / SEGMENT_WORKLOADS, lambda given: given["workload"]["axes"].update(segments=5))
    with pytest.raises(ProblemError, match=r"the constraint len_offsets == segments \+ 1 does not hold"):
        inputs(load(sets / SEGMENTS, constants=at(sets / SEGMENTS, "3f9a1c02")))


def test_comments_and_lines_in_expressions_are_harmless(sets: Path) -> None:
    change(sets / PAIRS, lambda given: given["axes"]["half"].update(expression="(width\n// 2)  # half"))
    change(sets / PAIRS, lambda given: given.update(constraints=["rows > 0  # not empty", "chosen\\\n > 0"]))
    assert load(sets / PAIRS).half == 16 and len(inputs(load(sets / PAIRS))) == 2


def test_lines_of_the_reference_keep_their_numbers(sets: Path) -> None:
    lines = read_trace(sets / SEGMENTS).splitlines()
    assert lines[0] == "import torch" and lines[4].startswith("def run(")


@pytest.mark.parametrize(("break_it", "said"), [
    (lambda sets: (sets / SEGMENT_WORKLOADS).unlink(), "it has no workloads; add "),
    (lambda sets: change(sets / SEGMENTS, lambda given: given.pop("inputs")), "the field 'inputs' is missing"),
    (lambda sets: (sets / SEGMENTS).write_bytes(b"\xff"), ": not UTF-8: invalid start byte at byte 0"),
])
def test_what_cannot_be_read_is_the_error_of_one_problem(
    sets: Path, break_it: Callable[[Path], object], said: str
) -> None:
    break_it(sets)
    found = read(sets, sets).problems["segment_sums"]
    assert said in found.error and found.error.count(str(sets / SEGMENTS)) == 1
    with pytest.raises(ProblemError) as caught:
        load(sets / SEGMENTS)
    assert str(caught.value) == found.error
