"""What is refused in a definition, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inlinebench.catalog.traces.definition import read_definition
from inlinebench.catalog.traces.fields import DefinitionError

from ...traces.files import FOLDER, PAIRS, SEGMENTS, change, copy_sets

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    return copy_sets(tmp_path)


def test_a_definition_is_read() -> None:
    found = read_definition(FOLDER / SEGMENTS)
    assert (found.name, found.operation, found.tags) == ("segment_sums", "segment", ("ragged",))
    assert (found.sizes, found.variables) == ({"columns": 24}, ("rows", "segments", "len_offsets"))
    assert [(each.name, each.shape, each.dtype) for each in found.inputs] == [
        ("x", ("rows", "columns"), "float32"), ("offsets", ("len_offsets",), "int32"), ("scale", None, "float32")]
    assert [each.name for each in found.outputs] == ["sums", "largest"]


def test_axes_can_be_computed_from_others() -> None:
    found = read_definition(FOLDER / PAIRS)
    assert (found.expressions, found.drawing) == ({"half": "width // 2"}, "draw")


@pytest.mark.parametrize(("edit", "said"), [
    (lambda given: given.pop("reference"), "the field 'reference' is missing"),
    (lambda given: given.pop("name"), "the field 'name' is missing"),
    (lambda given: given.update(axes=[]), "the field 'axes' must be an object"),
    (lambda given: given.update(inputs={"x": 3}), "inputs['x'] must be an object"),
    (lambda given: given.update(tags=[1]), "the field 'tags' must be a list of texts"),
    (lambda given: given["axes"]["rows"].update(type="dynamic"),
     "axes['rows']: the type 'dynamic' is unknown; it must be const, var or expr"),
    (lambda given: given["axes"]["columns"].update(value=True),
     "axes['columns']: the field 'value' must be a whole number"),
    (lambda given: given["inputs"]["x"].update(dtype="float4_e2m1"),
     "inputs['x']: the dtype 'float4_e2m1' is not supported; the dtypes are float64, float32"),
    (lambda given: given["outputs"]["sums"].update(dtype="complex64"),
     "outputs['sums']: the dtype 'complex64' is not supported"),
    (lambda given: given["inputs"]["x"].pop("shape"),
     "inputs['x']: the field 'shape' is missing; it is null for a Python scalar"),
    (lambda given: given["inputs"]["x"].update(shape=["rows", "hidden"]),
     "inputs['x']: its shape has the axis 'hidden', which 'axes' lacks"),
    (lambda given: given.update(reference="def run(x:\n"), "its reference is not Python: line 1: "),
    (lambda given: given.update(reference="def compute(x): ..."), "its reference defines no function 'run'"),
    (lambda given: given.update(reference="def run(x, offsets): ..."),
     "run(x, offsets) does not accept the 3 inputs of the definition by position: x, offsets, scale"),
    (lambda given: given.update(reference="def run(x, offsets, scale, *, eps): ..."), "run(x, offsets, scale, *, eps)"),
    (lambda given: given.update(constraints=["rows = 3"]), "'rows = 3' is not a Python expression"),
    (lambda given: given["axes"].update({"head-size": {"type": "var"}}), "the name 'head-size' is not a Python name"),
    (lambda given: given["axes"].update(weight={"type": "var"}), "the axis 'weight' has the name of a key of WORKL"),
    (lambda given: given.update(reference="class Model: ...\n" + given["reference"]),
     "its reference defines 'Model', a name that problem files need; rename it there"),
    (lambda given: given["axes"].update(torch={"type": "var"}), "the name 'torch' also means something else in "),
    (lambda given: given["axes"].update(scale={"type": "var"}),
     "the name 'scale' also means something else in another axis or input"),
    (lambda given: given.update(reference="columns = 24\n" + given["reference"]),
     "the name 'columns' also means something else in the reference; rename the axis or input"),
])
def test_a_fault_is_named_with_its_place(sets: Path, edit: Edit, said: str) -> None:
    change(sets / SEGMENTS, edit)
    with pytest.raises(DefinitionError) as caught:
        read_definition(sets / SEGMENTS)
    assert str(caught.value).startswith(f"{sets / SEGMENTS}: ") and said in str(caught.value)


@pytest.mark.parametrize(("expression", "said"), [
    ("width // depth", "its expression has the axis 'depth', which 'axes' lacks"),
    ("__import__('os').getpid()", "must be arithmetic of whole numbers and axes"),
    ("width.bit_length()", "must be arithmetic of whole numbers and axes"),
    ("width * 0.5", "must be arithmetic of whole numbers and axes"),
    ("width +", "is not a Python expression"),
])
def test_the_expression_of_an_axis_is_arithmetic(sets: Path, expression: str, said: str) -> None:
    change(sets / PAIRS, lambda given: given["axes"]["half"].update(expression=expression))
    with pytest.raises(DefinitionError, match=r"axes\['half'\]: ") as caught:
        read_definition(sets / PAIRS)
    assert said in str(caught.value)


def test_a_function_that_draws_inputs_must_be_in_the_reference(sets: Path) -> None:
    change(sets / PAIRS, lambda given: given.update(custom_inputs_entrypoint="draws"))
    with pytest.raises(DefinitionError, match="its reference defines no function 'draws' to draw inputs"):
        read_definition(sets / PAIRS)


@pytest.mark.parametrize(("text", "said"), [("{", ", line 1: not JSON"), ("[]", ": it must be a JSON object"),
                                            ("{\n\n]", ", line 3: not JSON")])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "definition.json"
    path.write_text(text)
    with pytest.raises(DefinitionError) as caught:
        read_definition(path)
    assert f"{path}{said}" in str(caught.value)
