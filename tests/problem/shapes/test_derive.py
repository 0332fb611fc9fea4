"""The rules of derived shapes, on given files and on generated ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.problem.shapes.constants import is_no_larger, leaves
from inlinebench.problem.shapes.derive import derive
from inlinebench.problem.shapes.steps import SMALL

INPUTS = "def get_inputs():\n    return [torch.rand({})]\ndef get_init_inputs():\n    return []\n"


def derived(constants: str, sizes: str = "N, M") -> tuple[dict[str, Any], ...]:
    return derive(ast.parse(f"{constants}\n{INPUTS.format(sizes)}")).shapes


@pytest.mark.parametrize(("constants", "sizes", "expected"), [
    ("N = 4096", "N, N", {"N": 256}),
    ("M, K, N = 2048, 8192, 4096", "M, K", {"M": 128, "K": 512, "N": 256}),
    ("N: int = 2048 * 2", "N, N", {"N": 256}),
    ("N = 1 << 14\nTWICE = 2 * N", "N, TWICE", {"N": 256}),
    ("batch_size = 32768\ninput_shape = (32768,)\ndim = 1", "batch_size, *input_shape",
     {"batch_size": 256, "input_shape": (256,)}),
    ("batch_size = 2048\nsizes = [1024] * 3", "batch_size, 1024",
     {"batch_size": 256, "sizes": [256, 256, 256], "1024": 256}),
    ("batch_size = 100\nshape = (batch_size, 3, 512, 512)", "shape", {"batch_size": 10, "shape": (10, 3, 128, 128)}),
    ("dim, layers = 128, 4\nchannels = dim\nwide = 2 * channels", "layers, channels, wide, wide", {"dim": 32}),
    ("height = width = 2048\nheight, width = 32, 32\ndim = 16384", "dim, height, width", {"dim": 256}),
    ("a, b, c = 48, 24, 96\nbatch_size, kernel_size = 8, 3", "batch_size, a, c, c, c",
     {"batch_size": 2, "a": 16, "b": 16, "c": 32}),
    ("dim = 65535\nbatch_size = 32768", "batch_size, dim", {"dim": 287, "batch_size": 256}),
    ("batch_size, kernel_size, stride, padding = 256, 11, 2, 5\nwidth = 4096", "batch_size, 3, width, width",
     {"batch_size": 8, "width": 128}),
    ("batch_size, in_features, out_features, num_groups = 1024, 8192, 8192, 256", "batch_size, in_features",
     {"batch_size": 256, "in_features": 256, "out_features": 256, "num_groups": 8}),
    ("batch, channels, height, width, groups = 16, 64, 512, 512, 8", "batch, channels, height, width",
     {"batch": 2, "height": 64, "width": 64}),
    ("batch_size, seq_len, n_embd, n_head = 128, 512, 768, 8", "batch_size, seq_len, n_embd",
     {"batch_size": 8, "seq_len": 128}),
    ("tokens, hidden, num_heads, num_kv_heads = 8192, 4096, 32, 8", "tokens, hidden",
     {"tokens": 2048, "hidden": 1024, "num_heads": 8, "num_kv_heads": 2}),
    ("batch_size, n_heads, seq_length, d_head = 256, 12, 2048, 64", "batch_size, n_heads, seq_length, d_head",
     {"batch_size": 8, "seq_length": 128}),
    ("channels, group_size, width = 4096, 64, 8192", "channels, width", {"channels": 256, "width": 512}),
])
def test_sizes_are_reduced(constants: str, sizes: str, expected: dict[str, Any]) -> None:
    assert derived(constants, sizes)[0] == expected


@pytest.mark.parametrize("constants", [
    "N, M = 64, 24",
    "N, M = 1000, 1000",
    "batch_size, features = 16, 24",
    "N = int(4096)\nM = 2 ** (2 ** 30)",
    "N = 4096\nN = 8192",
    "for N in (4096, 8192):\n    pass",
    "N = 4096.0\nM = True\nNAME = 'a'",
    "",
])
def test_files_that_are_small_or_assign_no_plain_size_have_no_derived_shape(constants: str) -> None:
    assert derived(constants) == ()


def test_a_file_is_tried_as_written_at_last_and_the_smallest_shape_second() -> None:
    shapes = derived("M, K, N = 2048, 8192, 4096", "M, K")
    assert shapes[-1] == {} and len(shapes) > 2
    assert all(is_no_larger(shapes[1], shape) for shape in shapes[:-1])
    assert all(is_no_larger(shapes[0], shape) for shape in shapes[2:-1])


def test_only_batch_sizes_become_smaller_than_small_numbers() -> None:
    (first, *_) = derived("batch_size, layers, classes = 16, 3, 12\nx, y, z = 500, 500, 500", "batch_size, x, y, z")
    assert first["batch_size"] < 16 and not {"layers", "classes"} & first.keys()


def test_a_size_need_not_be_a_multiple_of_a_window() -> None:
    text = "batch_size, channels, depth = 8, 48, 96\n{} = 3"
    windows, others = (derived(text.format(name), "batch_size, channels, depth, depth, depth")[0]
                       for name in ("kernel_size", "groups"))
    assert windows["channels"] % 3 and others.get("channels", 48) % 3 == 0


@pytest.mark.parametrize(("inputs", "init", "expected"), [
    ("def get_inputs(batch=64, size=512):\n    return [torch.randn(batch, 3, size, size)]", "[]",
     {"64": 8, "512": 128}),
    ("def get_inputs():\n    batch, size = 64, 512\n    return [torch.randn(batch, 3, size, size)]", "[]",
     {"64": 8, "512": 128}),
    ("def get_inputs():\n    return [torch.randn(64, 3, 2 ** 9, 512)]", "[]", {"64": 8, "512": 128}),
    ("def get_inputs():\n    return [torch.randn((64, 64, 512, 512))]", "[64]", {"64": 32, "512": 32}),
    ("def get_inputs():\n    return [torch.randn(1024, 8192) for _ in range(2048)]", "[8192, 4096]",
     {"1024": 128, "8192": 512, "4096": 256}),
    ("def get_inputs():\n    torch.manual_seed(8192)\n    return [torch.randn(1024, 1024)[512:] * 4096]", "[]", ()),
    ("def get_inputs():\n    return [torch.randint(0, 32000, (8, 2048, 256))]", "[{'vocab': 32000}]",
     {"32000": 768, "2048": 512}),
])
def test_numbers_that_the_functions_write_out_are_reduced(inputs: str, init: str, expected: dict[str, int]) -> None:
    tree = ast.parse(f"{inputs}\ndef get_init_inputs():\n    return {init}\n")
    shapes = derive(tree).shapes
    assert (shapes[0] if shapes else ()) == expected


def test_shapes_with_the_numbers_of_the_functions_follow_for_a_model_that_needs_these() -> None:
    shapes = derived("batch_size, classes = 1024, 1000", "batch_size, 3, 224, 224")
    assert "224" in shapes[0] and {"224"} & {name for shape in shapes for name in shape}
    without = [shape for shape in shapes if shape and "224" not in shape]
    assert without and shapes.index(without[0]) > max(index for index, shape in enumerate(shapes) if "224" in shape)


def test_a_size_of_a_file_that_a_literal_repeats_is_replaced_by_the_same_number() -> None:
    shape = derived("size = 512\nbatch_size = 64", "batch_size, 3, 512, 512")[0]
    assert shape["size"] == shape["512"] < 512


NAMES = ("batch_size", "dim", "width", "features", "kernel_size", "hidden", "shape")
SIZES = st.integers(1, 40) | st.integers(1, 20000) | st.integers(1, 600).map(lambda number: 32 * number)
FILES = st.dictionaries(st.sampled_from(NAMES), SIZES | st.lists(SIZES, min_size=1, max_size=3).map(tuple), min_size=1)


def sizes_of(constants: Mapping[str, Any], shape: Mapping[str, Any], *without: str) -> dict[int, int]:
    """Returns the numbers of a file, apart from those of some names, with the numbers that replace them."""
    found: dict[int, int] = {}
    for name, value in constants.items():
        if name not in without:
            pairs = zip(leaves(value), leaves(shape.get(name, value)), strict=True)
            found |= dict(pairs)
    return found


@given(FILES)
def test_derived_sizes_are_never_larger_nor_empty(constants: dict[str, Any]) -> None:
    for shape in derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants)):
        assert all(1 <= new <= old for old, new in sizes_of(constants, shape).items())


def test_a_batch_size_stays_a_multiple_of_32_unless_that_is_too_large() -> None:
    shapes = derived("batch_size, N = 1024, 8192", "batch_size, N")
    assert shapes[0] == {"batch_size": 256, "N": 256} and shapes[1] == {"batch_size": 2, "N": 32}


VOLUME = """
batch_size, channels, features, kernel_size, depth, height, width = 16, 32, 64, 7, 16, 32, 64
model = torch.nn.Conv{}d(channels, features, kernel_size)
"""


@pytest.mark.parametrize(("dimensions", "lengths"), [("2", (16, 32, 32)), ("3", (8, 16, 16))])
def test_lengths_become_smaller_where_windows_slide_in_volumes(dimensions: str, lengths: tuple[int, ...]) -> None:
    names = ("depth", "height", "width")
    shape = derived(VOLUME.format(dimensions), "batch_size, channels, depth, height, width")[0]
    written = dict(zip(names, (16, 32, 64), strict=True))
    assert tuple({**written, **shape}[name] for name in names) == lengths
    assert "channels" not in shape


@given(FILES)
def test_multiples_of_32_stay_multiples_and_other_sizes_do_not_become_them(constants: dict[str, Any]) -> None:
    for shape in derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants)):
        sizes = sizes_of(constants, shape, "batch_size")
        assert all((new % 32 == 0) == (old % 32 == 0) and new % 8 == old % 8 for old, new in sizes.items())


@given(FILES)
def test_what_divides_a_number_still_does(constants: dict[str, Any]) -> None:
    for shape in derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants)):
        divisors = sizes_of(constants, shape, "kernel_size")
        for number, reduced in sizes_of(constants, shape, "batch_size").items():
            assert all(reduced % divisors[each] == 0 for each in divisors if each < number and number % each == 0)


@given(FILES)
def test_the_order_of_sizes_is_kept_and_small_ones_are(constants: dict[str, Any]) -> None:
    for shape in derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants)):
        sizes = sorted(sizes_of(constants, shape, "batch_size").items())
        assert [new for _, new in sizes] == sorted(new for _, new in sizes)
        assert all(old == new for old, new in sizes if old <= SMALL)


@given(FILES)
def test_a_number_that_occurs_twice_is_replaced_by_the_same_number(constants: dict[str, Any]) -> None:
    for shape in derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants)):
        pairs = {pair for name, value in constants.items() if name != "batch_size"
                 for pair in zip(leaves(value), leaves(shape.get(name, value)), strict=True)}
        assert len(pairs) == len({old for old, _ in pairs})


@given(FILES)
def test_the_smallest_shape_is_tried_and_is_much_smaller_than_a_large_file(constants: dict[str, Any]) -> None:
    shapes = derived("\n".join(f"{name} = {value}" for name, value in constants.items()), ", ".join(constants))
    work = [math.prod(leaves(list({**constants, **shape}.values()))) for shape in shapes]
    assert not work or min(work) < work[-1] == max(work)


DIVIDED = st.tuples(st.sampled_from(["num_groups", "n_head"]), st.integers(2, 64), st.integers(1, 300))


@given(DIVIDED, st.integers(1, 4096), st.integers(1, 4096))
def test_groups_keep_at_least_16_elements_and_heads_their_size(
    divided: tuple[str, int, int], batch: int, length: int
) -> None:
    name, parts, size = divided
    text = f"batch_size, channels, length, {name} = {batch}, {parts * size}, {length}, {parts}"
    found = derive(ast.parse(f"{text}\n{INPUTS.format('batch_size, channels, length')}"))
    for shape in (*found.shapes, *found.confirming):
        channels, fewer = shape.get("channels", parts * size), shape.get(name, parts)
        assert channels % fewer == 0
        kept = channels // fewer
        assert kept == size or (name == "num_groups" and kept >= 16), shape


@given(DIVIDED)
def test_a_file_with_several_heads_or_groups_never_gets_a_single_one(divided: tuple[str, int, int]) -> None:
    name, parts, size = divided
    text = f"channels, length, {name} = {parts * size}, 4096, {parts}"
    for shape in derive(ast.parse(f"{text}\n{INPUTS.format('channels, length')}")).shapes:
        assert shape.get(name, parts) > 1


@pytest.mark.parametrize(("constants", "sizes", "expected"), [
    ("batch_size, in_features, out_features, num_groups = 1024, 8192, 8192, 256", "batch_size, in_features",
     ({"batch_size": 2},)),
    ("batch_size, channels, height, width = 64, 64, 512, 512", "batch_size, channels, height, width",
     ({"batch_size": 2, "height": 64, "width": 64},)),
    ("M, K, N = 2048, 8192, 4096", "M, K", ({"M": 256, "K": 1024, "N": 512},)),
    ("batch_size, features = 512, 4096", "batch_size, features", ({"batch_size": 2},)),
    ("batch_size, features = 1048576, 16", "batch_size, features", ()),
    ("N = 64", "N, N", ()),
])
def test_a_failure_is_confirmed_with_the_inner_sizes_of_the_file(
    constants: str, sizes: str, expected: tuple[dict[str, int], ...]
) -> None:
    assert derive(ast.parse(f"{constants}\n{INPUTS.format(sizes)}")).confirming == expected


def matrix_product(operator: str, batch: int = 8192) -> ast.Module:
    return ast.parse(f"batch_size, K, N = {batch}, 8192, 8192\nclass Model:\n    def forward(self, x):\n"
                     f"        return {operator}\n{INPUTS.format('batch_size, K')}")


@pytest.mark.parametrize("operator", ["x @ self.w", "torch.matmul(x, self.w)", "nn.Linear(2, 3)(x)"])
def test_a_block_of_threads_for_each_output_of_a_matrix_product_is_affordable(operator: str) -> None:
    shape = derive(matrix_product(operator)).shapes[0]
    assert 256 * shape["batch_size"] * shape["N"] <= 1 << 22


def test_outputs_of_other_operators_are_not_limited_by_threads() -> None:
    assert derive(matrix_product("torch.relu(x)")).shapes[0] == {"batch_size": 256, "K": 256, "N": 256}


@pytest.mark.parametrize(("operator", "length"), [
    ("torch.cumsum(x, dim=1)", 256), ("torch.logcumsumexp(x, dim=1)", 256), ("torch.sum(x, dim=1)", 4000),
])
def test_a_sum_of_all_before_each_element_is_affordable_for_scans(operator: str, length: int) -> None:
    """Both files have half a million elements, which other operators may have on the CPU."""
    text = f"batch_size, length = 128, 4000\ndef forward(self, x):\n    return {operator}"
    shapes = derived(text, "batch_size, length")
    assert (shapes[0] if shapes else {"length": 4000})["length"] == length
