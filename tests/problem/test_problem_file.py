from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inlinebench.problem import problem_file
from inlinebench.problem.problem_file import ProblemError, construct, init_inputs, inputs, load, second_model, source_at

from ..running import ROOT

Write = Callable[[str], Path]

TAIL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.rand(2, 3)]

def get_init_inputs():
    return [3]
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "problem.py"
        path.write_text(text)
        return path

    return written


def test_the_full_shape_is_the_file_as_written(write: Write) -> None:
    module = load(write("N = 4\nTWICE = 2 * N" + TAIL))
    assert (module.N, module.TWICE) == (4, 8)


@pytest.mark.parametrize("text", ["N = 4\nTWICE = 2 * N" + TAIL, TAIL + "N = 4\nTWICE = 2 * N\n"])
def test_constants_that_are_computed_from_a_replaced_one_change_as_well(write: Write, text: str) -> None:
    path = write(text)
    module = load(path, constants={"N": 10})
    assert (module.N, module.TWICE) == (10, 20)
    assert load(path).N == 4


def test_a_number_is_replaced_in_both_functions_where_it_is_a_size(write: Write) -> None:
    text = TAIL.replace("[torch.rand(2, 3)]", "[torch.rand((2, 1 + 2)) * 3, range(3), torch.rand(4, 5)[:3]]")
    path = write(text)
    module = load(path, constants={"3": 7})
    assert module.get_init_inputs() == [7] and inspect.signature(module.Model).parameters["size"].default == 3
    scaled, numbers, rows = module.get_inputs()
    assert scaled.shape == (2, 7) and scaled.max() > 1 and len(numbers) == 3 and rows.shape == (3, 5)
    copied = write(source_at(path, "full", {"3": 7}))
    assert load(copied).get_inputs()[0].shape == (2, 7)


@pytest.mark.parametrize("statement", ["N: int = 4", "M, N = 1, 4", "(M, (N, K)) = (1, (4, 2))", "M = N = 4",
                                       "N = 1\nN = 4", "N = 1\nN += 3", "[M, N] = [1, 4]"])
def test_every_form_of_assignment_is_replaced(write: Write, statement: str) -> None:
    path = write(f"{statement}\nTWICE = 2 * N" + TAIL)
    assert load(path).TWICE == 8
    assert load(path, constants={"N": 10}).TWICE == 20


def test_other_names_in_the_same_assignment_do_not_change(write: Write) -> None:
    module = load(write("M, N = 1, 4" + TAIL), constants={"N": 10})
    assert (module.M, module.N) == (1, 10)


@pytest.mark.parametrize("value", [(3, 4), "text", None, 2.5, [1, 2], True, -1, float("1e30")])
def test_a_constant_can_be_replaced_by_any_literal(write: Write, value: object) -> None:
    assert value == load(write("N = 4" + TAIL), constants={"N": value}).N


def test_a_declared_shape_replaces_constants(write: Write) -> None:
    path = write('N = 4\nTWICE = 2 * N\nSHAPES = {"small": {"N": 10}, "computed": {"N": N * 100}}' + TAIL)
    assert load(path, "small").TWICE == 20
    assert load(path, "computed").TWICE == 800
    assert load(path, "full").TWICE == 8


def test_the_source_at_a_shape_is_the_same_problem(write: Write, tmp_path: Path) -> None:
    path = write('N = 4\nTWICE = 2 * N\nSHAPES = {"small": {"N": 10}}' + TAIL)
    copy = tmp_path / "copy.py"
    copy.write_text(source_at(path, "small", {}))
    assert load(copy).TWICE == 20


@pytest.mark.parametrize(("text", "said"), [
    ("def f(:", "line 1"),
    ("import no_such_module_anywhere" + TAIL, "ModuleNotFoundError"),
    ("1 / 0" + TAIL, "ZeroDivisionError"),
    ("raise SystemExit(3)" + TAIL, "SystemExit"),
    ("x = 1", "missing Model, get_inputs"),
    (TAIL.replace("def get_inputs", "def inputs"), "missing get_inputs;"),
    (TAIL.replace("class Model", "class Module"), "missing Model;"),
])
def test_the_error_of_an_invalid_file_names_the_file_and_the_reason(write: Write, text: str, said: str) -> None:
    path = write(text)
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert str(path) in str(caught.value) and said in str(caught.value)


def test_the_error_of_an_unknown_shape_or_constant_names_it(write: Write) -> None:
    path = write('N = 4\nSHAPES = {"small": {"N": 10}, "bad": {"Q": 1}}' + TAIL)
    with pytest.raises(ProblemError, match="no shape 'tiny'; the shapes are full, small"):
        load(path, "tiny")
    with pytest.raises(ProblemError, match="no constant Q"):
        load(path, "bad")
    with pytest.raises(ProblemError, match=r"SHAPES\['bad'\] must be a dictionary of constants"):
        load(write('N = 4\nSHAPES = {"bad": 3}' + TAIL), "bad")
    with pytest.raises(ProblemError, match="no constant Q"):
        load(path, constants={"Q": 1})


@pytest.mark.parametrize(("given", "expected"), [
    ("[3]", ([3], {})), ("(3,)", ([3], {})), ("[]", ([], {})), ("[(1, 2), [3]]", ([(1, 2), [3]], {})),
    ("[[3], {'bias': False}]", ([3], {"bias": False})), ("[{'a': 1}, 2]", ([{"a": 1}, 2], {})),
])
def test_all_forms_of_constructor_arguments(write: Write, given: str, expected: object) -> None:
    assert init_inputs(load(write(TAIL.replace("return [3]", f"return {given}")))) == expected


@pytest.mark.parametrize("given", ["torch.rand(2, 3)", "{'x': 1}", "None", "3", "1 / 0", "exit()"])
def test_arguments_that_are_not_a_list_are_an_error(write: Write, given: str) -> None:
    with pytest.raises(ProblemError, match="get_inputs"):
        inputs(load(write(TAIL.replace("return [torch.rand(2, 3)]", f"return {given}"))))
    if not given.startswith("{"):
        with pytest.raises(ProblemError, match="get_init_inputs"):
            init_inputs(load(write(TAIL.replace("return [3]", f"return {given}"))))


def test_a_file_without_get_init_inputs_gives_the_constructor_no_arguments(write: Write) -> None:
    module = load(write(TAIL.partition("def get_init_inputs")[0]))
    assert init_inputs(module) == ([], {}) and construct(module)(*inputs(module)).shape == (2, 3)


def test_two_models_draw_the_same_weights_from_every_generator(write: Write) -> None:
    drawn = TAIL.replace("super().__init__()", "super().__init__(); import numpy, random; "
                         "self.drawn = (random.random(), numpy.random.rand())")
    module = load(write(drawn))
    one, other = construct(module), construct(module)
    assert torch.equal(one.linear.weight, other.linear.weight)
    assert one.drawn == other.drawn


def test_drawn_constructor_arguments_are_the_same_each_time(write: Write) -> None:
    module = load(write(TAIL.replace("return [3]", "return [torch.rand(4)]")))
    assert torch.equal(init_inputs(module)[0][0], init_inputs(module)[0][0])


def test_a_constructor_does_not_change_the_arguments_of_the_next(write: Write) -> None:
    text = TAIL.replace("size=3", "sizes").replace("super().__init__()", "super().__init__(); size = sizes.pop()")
    module = load(write("SIZES = [3]" + text.replace("return [3]", "return [SIZES]")))
    construct(module)
    construct(module)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("size=3", "size", "Model(...) raises TypeError"),
    ("(nn.Module)", "(object)", "raises TypeError"),
])
def test_a_model_that_cannot_be_constructed_is_an_error(write: Write, old: str, new: str, said: str) -> None:
    text = TAIL.replace(old, new).replace("return [3]", "return []")
    text = text.replace("super().__init__()", "super().__init__(1)") if old == "(nn.Module)" else text
    with pytest.raises(ProblemError) as caught:
        construct(load(write(text)))
    assert said in str(caught.value)


@pytest.mark.parametrize("attributes", [
    "linear = self.linear; self.f = lambda x: linear(x)",
    "linear = self.linear; self.f = [lambda x: x, lambda x: linear(x)]",
    "linear = self.linear; self.f = {'one': functools.partial(lambda x, y: linear(x), y=1)}",
    "linear = self.linear; self.register_forward_hook(lambda module, given, out: linear(out))",
    "self.f = functional.relu", "self.f = torch.relu", "pass",
])
def test_a_twin_has_the_same_weights_and_shares_no_memory(write: Write, attributes: str) -> None:
    text = TAIL.replace("        self.linear = nn.Linear(size, size)\n", f"""\
        self.linear = nn.Linear(size, size)
        self.unseeded = nn.Parameter(torch.randn(size, generator=generator))
        {attributes}
""").replace("import torch\n", """\
import functools
import torch
from torch.nn import functional
generator = torch.Generator()
""", 1)
    module = load(write(text))
    model = construct(module)
    other = second_model(module, model)
    assert all(map(torch.equal, model.parameters(), other.parameters()))
    for parameter in model.parameters():
        parameter.data.fill_(float("nan"))
    result = other(torch.ones(1, 3))
    kept = getattr(other, "f", None)
    functions = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, list) else [kept] if kept else []
    for function in functions:
        result = result + function(torch.ones(1, 3))
    assert torch.isfinite(result).all()


def test_a_missing_package_of_the_zoo_names_the_command(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(f"import not_installed{TAIL}")
    monkeypatch.setattr(problem_file, "ZOO", ("not_installed",))
    with pytest.raises(problem_file.PackageMissing, match=r"\(pip install not_installed\) to evaluate it"):
        load(path)
    with pytest.raises(problem_file.PackageMissing, match="install the package other to evaluate it"):
        load(write(f"import other{TAIL}"))


def test_the_extra_installs_the_packages_of_the_zoo() -> None:
    extra = re.search(r"^zoo = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert extra is not None and tuple(re.findall(r'"(\w+)', extra[1])) == problem_file.ZOO
