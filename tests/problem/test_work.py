from __future__ import annotations

import random
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.parameter import is_lazy
from torch.utils import flop_counter

from inlinebench.devices.cpu.device import CpuDevice
from inlinebench.problem import own_code, problem_file
from inlinebench.problem import work as module
from inlinebench.problem.forward import InputForm, Output, run
from inlinebench.problem.inputs import draw
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.work import Forwarded, memory_bytes, stated, work_of
from inlinebench.timing.roofline import Work

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]
HELP = 'as {"bytes": ..., "flops": ...}'

Counted = Callable[..., Work]


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Sets back what the problems that a test loads set in PyTorch."""
    found = own_code.TorchSettings()
    yield
    found.restore()


def counted_file(path: Path, shape: str = "full", *, tf32: bool = False) -> Work:
    """Counts the work of a problem file as the probe does."""
    loaded = problem_file.load(path, shape)
    model = problem_file.construct(loaded)
    drawn = draw(loaded, 1, CPU)
    tensors = [tensor.clone() for tensor in drawn.tensors]
    output = Output.of(run(model, InputForm(drawn.skeleton, drawn.is_tensor).arguments(tensors, drawn.non_tensors), 2))
    mutated = [
        index for index, (one, other) in enumerate(zip(tensors, drawn.tensors, strict=True))
        if not torch.equal(one, other)
    ]
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    before = copies_of_states(model)
    states = torch.get_rng_state(), random.getstate(), repr(numpy.random.get_state())
    work = work_of(loaded, model, Forwarded(drawn, output, mutated, storages), CPU, tf32=tf32)
    torch.testing.assert_close(copies_of_states(model), before, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1:] == (random.getstate(), repr(numpy.random.get_state()))
    return work


def copies_of_states(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items() if not is_lazy(tensor)}


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    """Counts the work of a problem with a given body of `forward`, inputs and constructor."""
    def of(forward: str, inputs: str, init: str = "pass", rest: str = "", tf32: bool = False) -> Work:
        path = tmp_path / "problem.py"
        indented = forward.replace("\n", "\n        ")
        path.write_text(f"""
import random, torch
from torch import nn

N = 8

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x, y=None):
        {indented}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return []

{rest}
""")
        return counted_file(path, tf32=tf32)

    return of


def test_a_linear_layer(counted: Counted) -> None:
    work = counted("return self.linear(x)", "[torch.rand(5, 8)]", "self.linear = nn.Linear(8, 3)")
    assert work == Work(bytes=4 * (5 * 8 + 8 * 3 + 3 + 5 * 3), flops=2 * 5 * 8 * 3, dtype="float32")


def test_elementwise_operations_are_not_counted(counted: Counted) -> None:
    assert counted("return x * 2 + 1", "[torch.rand(100)]") == Work(800, 0, "float32")


def test_training_batch_norm_reads_and_writes_its_states(counted: Counted) -> None:
    work = counted("return self.norm(x)", "[torch.rand(6, 4)]", "self.norm = nn.BatchNorm1d(4)")
    states = 4 * 4 + 4 * 4 + 8  # mean, variance, number of batches
    assert work.bytes == 4 * (2 * 6 * 4 + 4 + 4) + 2 * states


def test_a_state_that_does_not_change_is_only_read(counted: Counted) -> None:
    work = counted("return self.norm(x)", "[torch.rand(6, 4)]", "self.norm = nn.BatchNorm1d(4).eval()")
    assert work.bytes == 4 * (2 * 6 * 4 + 4 + 4) + 4 * 4 + 4 * 4 + 8


def test_a_state_that_stays_nan_is_not_written(counted: Counted) -> None:
    work = counted("return x + self.state", "[torch.rand(4)]", "self.register_buffer('state', torch.full((4,), nan))",
                   "nan = float('nan')")
    assert work.bytes == 3 * 16


def test_a_changed_input_is_read_and_written(counted: Counted) -> None:
    assert counted("x.add_(1)\nreturn x.sum()", "[torch.rand(100)]").bytes == 400 + 400 + 4


def test_an_output_that_is_the_changed_input_is_written_once(counted: Counted) -> None:
    assert counted("return x.add_(1)", "[torch.rand(100)]").bytes == 800


def test_an_output_that_is_a_view_of_an_input_is_not_written(counted: Counted) -> None:
    assert counted("return x.view(10, 10), x[:5] + 1", "[torch.rand(100)]").bytes == 400 + 20


def test_an_output_that_is_a_weight_is_not_written(counted: Counted) -> None:
    assert counted("return self.weight", "[torch.rand(1)]", "self.weight = nn.Parameter(torch.rand(9))").bytes == 40


def test_outputs_that_share_memory_are_written_once(counted: Counted) -> None:
    assert counted("out = x + 1\nreturn out, out.view(10, 10), out[:50]", "[torch.rand(100)]").bytes == 800


def test_tied_weights_are_read_once(counted: Counted) -> None:
    init = "self.one = nn.Linear(8, 8, bias=False); self.other = nn.Linear(8, 8, bias=False)"
    init += "; self.other.weight = self.one.weight"
    tied = counted("return self.other(self.one(x))", "[torch.rand(8, 8)]", init)
    assert tied.bytes == 3 * 256
    assert tied.flops == 2 * 2 * 8**3


@pytest.mark.parametrize(("inputs", "size"), [
    ("[torch.rand(1, 10).expand(50, 10)]", 2000),  # inputs are dense
    ("[torch.rand(1).expand(7, 7)]", 196),
    ("[torch.rand(0, 5)]", 0),
    ("[torch.rand(100)[:10]]", 40),
    ("[torch.rand(10, 10)[:, ::2]]", 200),
    ("[torch.rand(10).as_strided((8, 3), (1, 1))]", 96),
    ("[torch.tensor(1.0)]", 4),
    ("[t := torch.rand(10), t]", 40),
    ("[t := torch.rand(10), t[5:]]", 40),
    ("[(t := torch.rand(10))[:5], t[5:]]", 40),
    ("[(t := torch.rand(10))[::2], t[1::2]]", 40),
    ("[torch.rand(10), torch.rand(10).half()]", 60),
    ("[torch.rand(10), 3.5]", 40),
])
def test_every_byte_of_the_inputs_is_read_once(counted: Counted, inputs: str, size: int) -> None:
    assert counted("return torch.zeros(3)", inputs).bytes == size + 12


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(st.lists(st.tuples(sizes, st.lists(st.integers(0, 5), min_size=3, max_size=3), st.integers(0, 8)), max_size=4))
def test_the_bytes_of_overlapping_tensors_are_bounded_by_their_elements_and_their_storage(
    views: list[tuple[list[int], list[int], int]]
) -> None:
    storage = torch.arange(100, dtype=torch.float32)
    tensors = [storage.as_strided(shape, strides[: len(shape)], offset) for shape, strides, offset in views]
    found = memory_bytes(tensors)
    touched = [set(tensor.flatten().tolist()) for tensor in tensors]
    assert found <= sum(tensor.numel() * 4 for tensor in tensors)
    assert found <= storage.numel() * 4
    assert found >= max((4 * len(cells) for cells in touched), default=0)
    assert memory_bytes(tensors * 2) == found
    assert memory_bytes([*tensors, torch.zeros(3)]) == found + 12


@given(sizes, st.permutations(range(3)))
def test_the_bytes_of_a_dense_tensor_do_not_depend_on_the_order_of_dimensions(
    shape: list[int], order: Sequence[int]
) -> None:
    dense = torch.zeros(*shape)
    turned = dense.permute([axis for axis in order if axis < len(shape)])
    assert memory_bytes([turned]) == memory_bytes([dense]) == dense.numel() * 4


def test_sparse_and_empty_weights_count_as_zero_bytes(counted: Counted) -> None:
    init = ("self.register_buffer('empty', torch.rand(3, 0)); "
            "self.register_buffer('sparse', torch.eye(3).to_sparse())")
    work = counted("return x + 1", "[torch.rand(4)]", init)
    assert (work.bytes, work.note) == (32, "")


@pytest.mark.parametrize(("init", "forward", "size"), [
    ("torch.zeros(4, dtype=torch.bool)", "self.state.logical_not_()", 4),
    ("torch.zeros(4) + 1j", "self.state = self.state * 2", 32),
    ("torch.zeros(4)", "self.state = self.state[:2] if len(self.state) > 2 else self.state + 1", 8),
    ("torch.zeros(6).view(2, 3).t()", "self.state += 1", 24),
])
def test_changed_states_of_any_kind_are_written(counted: Counted, init: str, forward: str, size: int) -> None:
    work = counted(f"{forward}\nreturn x + 1", "[torch.rand(4)]", f"self.register_buffer('state', {init})")
    assert work.bytes == 32 + 2 * size


@pytest.mark.parametrize(("forward", "inputs", "dtype"), [
    ("return x + 1", "[torch.rand(4)]", "float32"),
    ("return x + 1", "[torch.rand(4).double()]", "float64"),
    ("return x + 1", "[torch.rand(4).half()]", "float16"),
    ("return x.float() + y.float()", "[torch.rand(4).half(), torch.rand(4).bfloat16()]", "bfloat16"),
    ("return (x @ x).float()", "[torch.rand(4, 4).bfloat16()]", "bfloat16"),
    ("return x.bfloat16()", "[torch.rand(4)]", "bfloat16"),
    ("return x.argmax()", "[torch.rand(4).double()]", "float64"),
    ("return x + 1", "[torch.arange(4)]", "float32"),
    ("return x + 1", "[torch.rand(4) + 1j]", "float32"),
    ("return x + 1", "[(torch.rand(4) + 1j).to(torch.complex128)]", "float64"),
    ("return x.float()", "[torch.rand(4).to(torch.float8_e4m3fn)]", "float8_e4m3fn"),
])
def test_the_coarsest_dtype_counts(counted: Counted, forward: str, inputs: str, dtype: str) -> None:
    assert counted(forward, inputs).dtype == dtype


def test_the_dtype_of_weights_counts_if_it_is_coarser_than_that_of_inputs_and_outputs(counted: Counted) -> None:
    work = counted("return self.linear(x.bfloat16()).float()", "[torch.rand(4, 4)]",
                   "self.linear = nn.Linear(4, 4).bfloat16()")
    assert work.dtype == "bfloat16"


@pytest.mark.parametrize(("inputs", "dtype"), [
    ("[torch.rand(4)]", "tf32"), ("[torch.rand(4).double()]", "float64"), ("[torch.rand(4).half()]", "float16"),
])
def test_with_tf32_only_float32_becomes_tf32(counted: Counted, inputs: str, dtype: str) -> None:
    assert counted("return x + 1", inputs, tf32=True).dtype == dtype


def test_a_problem_can_define_its_own_counts(counted: Counted) -> None:
    rest = "def work():\n    return {'bytes': 3 * N, 'flops': N}"
    assert counted("return x @ x", "[torch.rand(N, N)]", rest=rest) == Work(24, 8, "float32", stated=True)


@pytest.mark.parametrize(("given", "expected"), [
    ("{'bytes': 5}", Work(5, 2 * 8**3, "float32", stated=True)),
    ("{'flops': 5}", Work(2 * 256, 5, "float32", stated=True)),
    ("{'bytes': 0, 'flops': 0}", Work(0, 0, "float32", stated=True)),
])
def test_a_count_that_the_problem_does_not_define_is_counted(counted: Counted, given: str, expected: Work) -> None:
    assert counted("return x @ x", "[torch.rand(N, N)]", rest=f"def work():\n    return {given}") == expected


def test_the_reference_does_not_run_again_if_both_counts_are_defined(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run", None)
    rest = "def work():\n    return {'bytes': 1, 'flops': 1}"
    assert counted("return x @ x", "[torch.rand(N, N)]", rest=rest).note == ""


@pytest.mark.parametrize(("given", "said"), [
    ("None", "returns None"), ("[1, 2]", "returns [1, 2]"), ("{}", "returns {}"), ("3", "returns 3"),
    ("{'byte': 3}", "returns {'byte': 3}"), ("{'bytes': 3, 'ops': 1}", "'ops'"), ("{3: 3}", "returns {3: 3}"),
    ("{'bytes': 1.5}", "returns 1.5 for bytes"), ("{'bytes': 4.0}", "divide with //"),
    ("{'flops': -1}", "returns -1 for flops"),
    ("{'flops': True}", "returns True for flops"), ("{'bytes': '3'}", "returns '3' for bytes"),
    ("{'bytes': None}", "returns None for bytes"), ("{'bytes': [1] * 999}", "..."),
    ("1 // 0", "raises ZeroDivisionError"), ("exit()", "raises SystemExit"), ("missing", "raises NameError"),
])
def test_invalid_counts_are_a_problem_error(counted: Counted, given: str, said: str) -> None:
    with pytest.raises(ProblemError) as caught:
        counted("return x", "[torch.rand(4)]", rest=f"def work():\n    return {given}")
    text = str(caught.value)
    assert said in text and "problem.py: work()" in text and HELP in text
    assert len(text) < 400 and "\n" not in text


@pytest.mark.parametrize("rest", ["work = 3", "work = None", "def work(x):\n    return x", "work = {'bytes': 3}"])
def test_a_work_that_cannot_be_called_is_a_problem_error(counted: Counted, rest: str) -> None:
    with pytest.raises(ProblemError, match=r"work\(\) raises TypeError"):
        counted("return x", "[torch.rand(4)]", rest=rest)


FAULTS = {
    "refuses to run twice": ("self.runs = getattr(self, 'runs', 0) + 1\nassert self.runs < 2, 'once'\nreturn x @ x",
                             "AssertionError: once"),
    "has no memory": ("self.runs = getattr(self, 'runs', 0) + 1\nif self.runs > 1: raise torch.OutOfMemoryError\n"
                      "return x @ x", "not enough memory"),
    "dislikes being watched": ("from torch.utils._python_dispatch import _get_current_dispatch_mode as mode\n"
                               "if mode(): raise NotImplementedError('watched')\nreturn x @ x", "watched"),
}


@pytest.mark.parametrize("how", sorted(FAULTS))
def test_a_reference_whose_operations_cannot_be_counted_has_bytes_and_a_note(counted: Counted, how: str) -> None:
    forward, said = FAULTS[how]
    work = counted(forward, "[torch.rand(8, 8)]")
    assert (work.bytes, work.flops) == (512, 0)
    assert work.note.startswith("operations not counted") and said in work.note


def test_a_failing_counter_only_leaves_a_note(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(display: bool) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(flop_counter, "FlopCounterMode", refuse)
    work = counted("return x @ x", "[torch.rand(8, 8)]")
    assert (work.bytes, work.flops, work.note) == (512, 0, "operations not counted: KeyError: 'planted'")


def test_the_reference_does_not_run_again_without_memory_for_it(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuDevice, "free_bytes", lambda device: 511)
    monkeypatch.setattr(module, "run", None)
    assert "not enough memory" in counted("return x @ x", "[torch.rand(8, 8)]").note
    monkeypatch.undo()
    assert counted("return x @ x", "[torch.rand(8, 8)]").note == ""


def test_a_reference_may_draw_from_every_generator(counted: Counted) -> None:
    forward = "import numpy\nreturn x + torch.rand(4) + random.random() + numpy.random.rand()"
    assert counted(forward, "[torch.rand(4)]").note == ""


def test_counting_does_not_change_attributes_of_the_model(counted: Counted) -> None:
    forward = "self.seen.append(x)\nassert len(self.seen) <= 2\nreturn x @ x"
    assert counted(forward, "[torch.rand(8, 8)]", "self.seen = []").flops == 2 * 8**3


def test_a_model_that_cannot_be_copied_is_constructed_again() -> None:
    work = counted_file(ROOT / "tests/problems/uncopyable.py")
    assert (work.note, work.flops) == ("", 0)
    assert work.bytes == 4 * (16 + 16 + 16) + 4 + 4  # input, weight, output; the number of calls is read and written


def test_the_diagonal_product_defines_the_counts_of_scaling_rows() -> None:
    assert counted_file(ROOT / "problems/matmul_diag.py", "odd") == Work(
        bytes=4 * (131 + 2 * 131 * 197), flops=131 * 197, dtype="float32", stated=True
    )


def test_the_counts_of_the_diagonal_product_work_without_the_harness() -> None:
    names = runpy.run_path(str(ROOT / "problems/matmul_diag.py"))
    size = 4096
    assert names["work"]() == {"bytes": 4 * (size + 2 * size * size), "flops": size * size}


@pytest.mark.parametrize("name", ["matmul_transposed_a", "matmul_transposed_b", "gemm_scale_batchnorm"])
def test_bundled_products_are_counted(name: str) -> None:
    work = counted_file(ROOT / "problems" / f"{name}.py", "small")
    assert work.flops > 0 and work.bytes > 0 and not work.stated and not work.note


PROBLEMS = sorted((ROOT / "tests/problems").glob("*.py"))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_work_is_counted_for_every_problem_without_changing_it(path: Path) -> None:
    shapes = getattr(problem_file.load(path), "SHAPES", {})
    work = counted_file(path, min(shapes, default="full"))
    assert not work.note and not work.stated


def test_a_problem_without_work_has_no_counts_of_its_own() -> None:
    assert stated(problem_file.load(PROBLEMS[0])) == {}


def test_convolutions_and_batched_products_are_counted(counted: Counted) -> None:
    convolution = counted("return self.layer(x)", "[torch.rand(2, 3, 8, 8)]", "self.layer = nn.Conv2d(3, 5, 3)")
    assert convolution.flops == 2 * 2 * 5 * 3 * 9 * 6 * 6
    assert counted("return torch.bmm(x, x)", "[torch.rand(4, 6, 6)]").flops == 2 * 4 * 6**3


def test_counting_does_not_import_torchdynamo() -> None:
    program = (
        "import sys, torch; from torch.utils.flop_counter import FlopCounterMode\n"
        "from inlinebench.problem import work\n"
        "work._avoid_dynamo_import()\n"
        "with torch.no_grad(), FlopCounterMode(display=False) as counter: torch.ones(4, 4) @ torch.ones(4, 4)\n"
        "sys.exit(counter.get_total_flops() != 128 or 'torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
