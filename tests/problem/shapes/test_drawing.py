"""The sizes that `--fuzz` draws: which constants are sizes, their ranges, the drawing, and shrinking."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.problem.shapes.cost import Cost, cost_of
from inlinebench.problem.shapes.drawing import TILES, Drawing, shrunk
from inlinebench.problem.shapes.ranges import Range, constants_of, derive_ranges, read_ranges, relations

from ...running import ROOT

MATRICES = ast.parse("""
ROWS, COLUMNS = 4096, 8192
def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]
""")
NONE = Cost(*[1 << 60] * 5)
LIMITS = Cost(1 << 15, 1 << 14, 1 << 20, 1 << 21, 1 << 14)

ranges = st.builds(lambda low, steps, step: Range(low, low + steps * step, step),
                   st.integers(0, 40), st.integers(0, 4000), st.integers(1, 130))


def drawn(given_ranges: Mapping[str, Range], seed: int, count: int = 32, limits: Cost = NONE) -> list[dict[str, int]]:
    return [dict(size) for size in islice(Drawing(MATRICES, given_ranges, limits, Random(seed)), count)]


@settings(max_examples=60, deadline=None)
@given(ranges, ranges, st.integers(0, 1 << 40))
def test_sizes_are_in_range_with_their_steps_and_drawn_once(one: Range, other: Range, seed: int) -> None:
    found = drawn({"ROWS": one, "COLUMNS": other}, seed)
    assert all(size["ROWS"] in one and size["COLUMNS"] in other for size in found)
    assert len({tuple(size.values()) for size in found}) == len(found) >= 1


@settings(max_examples=20, deadline=None)
@given(ranges, st.integers(0, 1 << 40))
def test_the_same_seed_draws_the_same_sizes(one: Range, seed: int) -> None:
    found = [drawn({"ROWS": one, "COLUMNS": Range(1, 8192)}, seed) for _ in range(2)]
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(40))
def test_32_sizes_have_the_values_at_which_kernels_go_wrong(seed: int) -> None:
    """These seeds have all of them; by chance, one of 750 lacks one."""
    columns = {size["COLUMNS"] for size in drawn({"ROWS": Range(1, 64), "COLUMNS": Range(1, 8192)}, seed)}
    assert {1} <= columns and columns & {2, 3, 4} and columns & {8191, 8192}
    multiples = [tile * times for tile in TILES for times in (1, 2, 3)]
    for shift in (-1, 0, 1):
        assert columns & {each + shift for each in multiples}
    assert any(value % 2 and value % 3 and value > 4 for value in columns)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 40))
def test_no_size_costs_more_than_the_limit(seed: int) -> None:
    found = drawn(derive_ranges(MATRICES), seed, limits=LIMITS)
    assert all(cost_of(MATRICES, size).is_within(LIMITS) for size in found)


def test_large_values_are_drawn_although_the_cost_is_limited() -> None:
    """Of each constant, while others are small; by chance, one draw of 1,500 has no large number of rows."""
    found = drawn(derive_ranges(MATRICES), 1, limits=LIMITS)
    assert max(size["COLUMNS"] for size in found) >= 8191 and max(size["ROWS"] for size in found) >= 4095


def test_few_sizes_are_all_drawn() -> None:
    found = drawn({"ROWS": Range(1, 3), "COLUMNS": Range(64, 64)}, 5)
    assert sorted(size["ROWS"] for size in found) == [1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(ranges, ranges, st.integers(0, 1 << 20), st.integers(0, 1 << 20), st.randoms())
def test_a_threshold_is_shrunk_to(one: Range, other: Range, at: int, beside: int, random: Random) -> None:
    size = {"ROWS": one.at_most(at), "COLUMNS": other.at_most(beside)}
    least = one.at_most(random.randint(one.low, max(one.low, size["ROWS"])))
    found = shrunk(size, {"ROWS": one, "COLUMNS": other}, lambda each: each["ROWS"] >= least, tries=24)
    assert found == {"ROWS": least, "COLUMNS": other.low}


def test_shrinking_stops_after_its_tries_and_keeps_what_alone_fails() -> None:
    asked = []
    size = {"ROWS": 4001, "COLUMNS": 8000}
    found = shrunk(size, {"ROWS": Range(1, 4096), "COLUMNS": Range(1, 8192)}, lambda each: bool(asked.append(each)), 24)
    assert (found, len(asked)) == (size, 24)
    found = shrunk(size, {"ROWS": Range(1, 4096), "COLUMNS": Range(1, 8192)}, lambda each: each["ROWS"] % 4 != 0, 24)
    assert found == {"ROWS": 1, "COLUMNS": 1}
    size = {"ROWS": 7, "COLUMNS": 49}
    found = shrunk(size, {"ROWS": Range(1, 64), "COLUMNS": Range(1, 99)},
                   lambda each: each["ROWS"] > 1 and each["COLUMNS"] > 4 and each["COLUMNS"] % 4 != 0, 24)
    assert found == {"ROWS": 2, "COLUMNS": 5}


def test_a_size_that_another_one_divides_mostly_stays_its_multiple() -> None:
    tree = ast.parse((ROOT / "problems" / "group_norm.py").read_text())
    found = derive_ranges(tree)
    assert relations(tree, found) == (("GROUPS", "CHANNELS"),)
    sizes = list(islice(Drawing(tree, found, LIMITS, Random(3)), 100))
    kept = sum(size["CHANNELS"] % size["GROUPS"] == 0 for size in sizes)
    assert 60 < kept < 98


@pytest.mark.parametrize(("text", "expected"), [
    ("ROWS = 64\nCHANNELS = 3\nN = 8\ndef get_inputs(): return [torch.randn(N, CHANNELS, ROWS)]", {"ROWS": 64}),
    ("batch_size = 8\nkernel_size = 31\ndef get_inputs(): return [torch.randn(batch_size, kernel_size)]",
     {"batch_size": 8}),
    ("M = 64\nUNUSED = 64\nN = 2 * M\ndef get_inputs(): return [torch.randn(N)]", {"M": 64}),
    ("shape = (128,)\nb = 32\ndef get_inputs(): return [torch.randn(b, *shape)]", {"shape[0]": 128, "b": 32}),
    ("seed = 1234\nM = 64\ndef get_inputs():\n    torch.manual_seed(seed)\n    return [torch.randn(M)]", {"M": 64}),
    ("def get_inputs(): return [torch.randn(16, 3, 224, 224)]", {"16": 16, "224": 224}),
    ("M, D = 32, 64\nSHAPES = {'small': {'M': 8}, 'long': {'M': 99}}\ndef get_inputs(): return [torch.randn(M, D)]",
     {"M": 99}),
    ("M, D = 32, 64\nWORKLOADS = [{'name': 'w', 'D': 4}]\ndef get_inputs(): return [torch.randn(M, D)]", {"D": 64}),
    ("n_head, head_dim = 8, 64\ndef get_inputs(): return [torch.randn(n_head, head_dim)]", {"n_head": 8}),
    ("eps = 0.5\nname = 'x'\ndef get_inputs(): return [torch.randn(4)]", {}),
])
def test_sizes_are_derived_from_the_text(text: str, expected: dict[str, int]) -> None:
    assert {name: each.high for name, each in derive_ranges(ast.parse(text)).items()} == expected


def test_declared_ranges_are_read() -> None:
    declared = ast.parse('{"M": (1, 64), "K": (0, 4096, 64)}', mode="eval").body
    assert read_ranges(declared, ("M", "K")) == {"M": Range(1, 64), "K": Range(0, 4096, 64)}


@pytest.mark.parametrize(("text", "what"), [
    ("[1, 2]", "must be a dictionary"), ("{'M': (1, f())}", "without running the file"),
    ("{'X': (1, 2)}", "no constant 'X'"), ("{'M': (5, 2)}", "RANGES['M'] is (5, 2)"), ("{'M': (-1, 2)}", "(-1, 2)"),
    ("{'M': (1, 2, 0)}", "(1, 2, 0)"), ("{'M': 5}", "is 5"), ("{'M': (1.0, 2.0)}", "(1.0, 2.0)"),
])
def test_a_wrong_declaration_is_explained_with_its_line(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1: RANGES") as caught:
        read_ranges(ast.parse(text, mode="eval").body, ("M",))
    assert what in str(caught.value)


def test_a_number_of_a_tuple_is_replaced_in_its_tuple() -> None:
    known = {"shape": (128, "M", 7), "M": 4}
    assert constants_of({"M": 5, "shape[0]": 9}, known) == {"M": 5, "shape": (9, 5, 7)}


def test_every_bundled_problem_has_sizes() -> None:
    for path in Path(ROOT / "problems").glob("*.py"):
        assert derive_ranges(ast.parse(path.read_text())), path.name
