"""The whole pipeline on the CPU without mocks: the results of all problems and solutions in this folder.

Every reference passes, and so does every solution that is not listed below with another verdict and its reason.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from inlinebench.results.result import Verdict
from inlinebench.results.result_schema import result_schema

from .running import TESTS, Run, run_eval

PROBLEMS = sorted(path.stem for path in (TESTS / "problems").glob("*.py"))
SOLUTIONS = sorted(f"{path.parent.name}/{path.stem}" for path in (TESTS / "solutions").glob("*/*.py"))
CALLS = 6
WARMUP = 5

OWN_WEIGHTS = "with the solution's own weights instead of the reference's"
WRONG = {
    "aliasing/view_of_the_input": "an output shares memory with an input",
    "axpy/wrong": "1000 elements differ",
    "batch_norm/biased_variance": "12 elements differ",
    "batch_norm/no_state": "the reference updates its buffer bn.running_mean; the solution has no buffer",
    "batch_norm/state_not_updated": "buffer bn.running_mean: all 12 elements differ",
    "centred/not_centred": "elements differ",
    "integer_targets/sum_for_mean": "its one element differs",
    "integer_targets/wrong_shape": "an output has shape [1]; the reference's has []",
    "dropout/no_dropout": "must draw the same numbers from torch's generator, in the same order",
    "empty_output/wrong_shape": "an output has shape [0, 4]; the reference's has [0, 3]",
    "gathered_gate/frozen_weight": "the parameter weight does not require a gradient; the reference's does",
    "gathered_gate/gradient_for_the_unused": "gradient of spare: all 72 elements differ",
    "gathered_gate/incoming_changed": "the solution changed its inputs; the reference does not",
    "gathered_gate/last_of_equal_rows": "gradient of input 0: ",
    "gathered_gate/no_such_parameter": "no parameter matches the reference's weight, whose gradient is compared",
    "gathered_gate/not_recorded": "output 0 has no grad_fn, so it has no backward",
    "gathered_gate/one_output": "the output is Tensor; the reference returns tuple of 2",
    "gathered_gate/weight_left_out": "autograd returns None for the gradient of weight, which counts as zeros",
    "in_place/input_not_changed": "input 0, which the reference changes: all 64 elements differ",
    "in_place/other_input_changed": "the solution changed its inputs; the reference does not",
    "lazy_layers/other_names": "elements differ",
    "level1_matmul/double_output": "an output is float64; the reference's is float32",
    "level1_matmul/half_output": "an output is float16; the reference's is float32",
    "level1_matmul/half_precision": "elements differ",
    "level1_matmul/inputs_changed": "the solution changed its inputs; the reference does not",
    "level1_matmul/list_output": "the output is list of 1; the reference returns one value",
    "level1_matmul/nan": "1 of 4608 elements differ (0.0217 %); first at [95, 47]",
    "level1_matmul/none": "an output is NoneType; the reference returns exactly torch.Tensor",
    "level1_matmul/reads_as_stored": "elements differ",
    "level1_matmul/transposed_output": "an output has shape [48, 96]; the reference's has [96, 48]",
    "level1_matmul/zeros": "elements differ",
    "mixed_outputs/float_for_a_tensor": "an output is float; the reference returns exactly torch.Tensor",
    "mixed_outputs/one_dimension_too_many": "an output has shape [1]; the reference's has []",
    "mixed_outputs/too_short": "the output is tuple of 4; the reference returns tuple of 5",
    "mixed_outputs/wrong_bool": "output 2:",
    "mixed_outputs/wrong_dtype": "an output is int32; the reference's is int64",
    "mixed_outputs/wrong_float": "a plain output is 0.31; the reference returns 0.3",
    "mixed_outputs/wrong_integer": "output 1:",
    "mixed_outputs/wrong_text": "a plain output is 'round'; the reference returns 'flat'",
    "numpy_inputs/cached": "call 2 (",
    "philox_dropout/other_words": "elements differ",
    "quantized/packs_zeros": "got 0",
    "structured_inputs/positive_only": "elements differ",
    "zero_output/almost_zero": "all 64 elements differ",
}
OTHERS = {
    "axpy/compile_error": (Verdict.BUILD_FAILED, "cpp_sources:3:10: error: "),
    "axpy/neighbours_header": (Verdict.INVALID, "FileNotFoundError: "),
    "gathered_gate/backward_raises": (Verdict.CRASHED, "LookupError: no tile fits (backward_raises.py, line 14)"),
    "init_arguments/constructor_raises": (Verdict.CRASHED, "LookupError: no tile fits (constructor_raises.py, line 7)"),
    "init_arguments/other_signature": (Verdict.INVALID, "does not accept the 2 arguments of get_init_inputs()"),
    "level1_matmul/out_of_memory": (Verdict.OUT_OF_MEMORY, "RuntimeError: "),
    "level1_matmul/raises": (Verdict.CRASHED, "RuntimeError: no tile fits (raises.py, line "),
}
BY_SHAPE = {"shapes/even_only": {"small": Verdict.PASSED, "odd": Verdict.WRONG, "wide": Verdict.WRONG}}
RIGHT = [name for name in SOLUTIONS if name not in {*WRONG, *OTHERS, *BY_SHAPE}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipeline")


def evaluate(folder: Path, cache: Path, *wanted: str) -> Run:
    return run_eval(
        *wanted, "--problems", TESTS / "problems", "--solutions", TESTS / "solutions", "--device", "cpu", "--check",
        "--min-calls", str(CALLS), "--seed", "1", "--allow-library", "--cache", cache, "--junit", folder / "junit.xml",
        out=folder / "out.jsonl",
    )


@pytest.fixture(scope="module")
def run(cache: Path, folder: Path) -> Run:
    return evaluate(folder, cache, *sorted({name.partition("/")[0] for name in SOLUTIONS}))


@pytest.fixture(scope="module")
def references(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return evaluate(tmp_path_factory.mktemp("references"), cache, "*/@reference")


@pytest.mark.parametrize("name", RIGHT)
def test_an_honest_solution_passes(run: Run, name: str) -> None:
    rows = [row for row in run.results if f"{row.problem}/{row.solution}" == name]
    assert rows and [row.verdict for row in rows] == [Verdict.PASSED] * len(rows), [row.reason for row in rows]
    for row in rows:
        assert row.check is not None and row.check.calls == WARMUP + CALLS


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_itself_passes(references: Run, problem: str) -> None:
    rows = [row for row in references.results if row.problem == problem]
    assert rows and {row.verdict for row in rows} == {Verdict.PASSED}, [row.reason for row in rows]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_has_the_expected_reason(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is Verdict.WRONG, row.reason
    assert WRONG[name] in row.reason


@pytest.mark.parametrize("name", OTHERS)
def test_a_solution_that_cannot_run_has_the_expected_verdict_and_reason(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is OTHERS[name][0], row.reason
    assert OTHERS[name][1] in row.reason


@pytest.mark.parametrize("name", BY_SHAPE)
def test_a_solution_can_be_right_at_one_shape_and_wrong_at_another(run: Run, name: str) -> None:
    problem, solution = name.split("/")
    assert {shape: run.row(problem, solution, shape).verdict for shape in BY_SHAPE[name]} == BY_SHAPE[name]


def test_a_wrong_solution_whose_weights_were_replaced_is_told_so(run: Run) -> None:
    for name, told in (("packs_zeros", True), ("packs_at_first_call", False)):
        check = run.row("quantized", name).check
        assert check is not None and any("must be computed at the first call" in note for note in check.notes) is told


def test_a_further_attempt_with_the_solutions_own_weights_ends_with_the_first_call_that_differs(run: Run) -> None:
    tried_again = {row.reason: [note for note in row.check.notes if OWN_WEIGHTS in note]
                   for row in run.results if row.check is not None}
    calls = [note for notes in tried_again.values() for note in notes if re.search(r": call \d", note)]
    assert len(calls) > 5 and all(": call 1 (" in note for note in calls)
    # The first attempt goes on to tell whether the solution is right on inputs as drawn.
    assert any(reason.startswith("call 2 (inputs as drawn)") for reason, notes in tried_again.items() if notes)


def test_everything_is_evaluated_once(run: Run) -> None:
    names = [(row.problem, row.solution, row.shape) for row in run.results]
    assert len(set(names)) == len(names)
    assert {f"{problem}/{solution}" for problem, solution, _ in names} == set(SOLUTIONS)


def test_the_exit_status_and_the_output_show_all_failures(run: Run) -> None:
    assert run.status == 1
    assert "Traceback" not in run.out + run.err
    failures = [row for row in run.results if row.verdict is not Verdict.PASSED]
    for row in failures:
        assert re.search(rf"^{row.problem}/{row.solution} \({row.shape}\): {row.verdict}: ", run.out, re.MULTILINE)


def test_the_junit_file_contains_the_same_results(run: Run, folder: Path) -> None:
    suite = ElementTree.parse(folder / "junit.xml").getroot()
    assert len(list(suite.iter("testcase"))) == len(run.results)
    failed = sum(len(list(suite.iter(kind))) for kind in ("failure", "error"))
    assert failed == sum(row.verdict is not Verdict.PASSED for row in run.results)


def test_every_line_of_results_is_valid_by_the_schema(run: Run, folder: Path) -> None:
    lines = (folder / "out.jsonl").read_text().splitlines()
    assert len(lines) == len(run.results)
    valid = Draft202012Validator(result_schema())
    for line in lines:
        valid.validate(json.loads(line))


def test_the_output_of_a_solution_is_in_its_log_and_not_on_the_screen(run: Run) -> None:
    log = run.row("level1_matmul", "prints").log or ""
    for line in ("import was here", "forward was here", "child was here", "stderr was here"):
        assert line in log
        assert line not in run.out + run.err


def test_an_output_in_another_layout_is_accepted_with_a_note(run: Run) -> None:
    check = run.row("level1_matmul", "other_layout").check
    assert check is not None and any("layout" in note for note in check.notes)


@pytest.mark.parametrize(("name", "how"), [
    ("batch_norm/honest", "by value"), ("batch_norm/folded_weights", "by name"),
    ("init_arguments/honest", "by value"), ("dropout/honest", "none to match"), ("lazy_layers/honest", "by name"),
])
def test_the_result_says_how_weights_were_matched(run: Run, name: str, how: str) -> None:
    check = run.row(*name.split("/")).check
    assert check is not None and check.weights.startswith(how)


@pytest.mark.parametrize(("problem", "oracle"), [
    ("level1_matmul", "float64"), ("batch_norm", "float64"), ("dropout", "reference"), ("in_place", "reference"),
])
def test_the_result_names_the_oracle(run: Run, problem: str, oracle: str) -> None:
    check = run.row(problem, "honest").check
    assert check is not None and check.oracle == oracle


def test_the_result_has_the_build_and_the_compiler_s_output(run: Run) -> None:
    build = run.row("axpy", "slim_dict").build
    assert build is not None and build.headers and build.seconds > 0
    assert run.row("level1_matmul", "honest").build is None
    assert "undeclared" in (run.row("axpy", "compile_error").log or "")


def test_equal_sources_of_the_same_name_are_built_once(run: Run, cache: Path) -> None:
    assert run.row("axpy", "slim_list").build and run.row("axpy", "slim_string").build
    sources = {"slim_list and slim_string", "slim_dict", "wrong"}
    built = [facts for facts in cache.glob("*/*/facts.json") if "axpy" in json.loads(facts.read_text())["library"]]
    assert len(built) == len(sources)


def test_times_are_recorded_without_check(cache: Path, folder: Path) -> None:
    again = run_eval("level1_matmul/honest", "--problems", TESTS / "problems", "--solutions", TESTS / "solutions",
                     "--device", "cpu", "--min-calls", "5", "--allow-library", "--cache", cache,
                     out=folder / "timed.jsonl")
    assert again.status == 0, again.err
    timing = again.row("level1_matmul", "honest").timing
    assert timing is not None and timing.solution_ms.calls == 5
    assert timing.speedup.low <= timing.speedup.median <= timing.speedup.high


@pytest.mark.slow
def test_rare_forms_of_extensions_pass(cache: Path, folder: Path) -> None:
    solutions = TESTS / "solutions_slow"
    run = run_eval("--problems", TESTS / "problems", "--solutions", solutions, "axpy", "--device", "cpu", "--check",
                   "--allow-library", "--cache", cache, out=folder / "forms.jsonl")
    assert {row.solution for row in run.results} == {path.stem for path in solutions.glob("axpy/*.py")}
    assert {row.verdict for row in run.results} == {Verdict.PASSED}, [row.reason for row in run.results]


@pytest.mark.slow
def test_a_seed_replays_the_inputs(cache: Path, folder: Path) -> None:
    found = []
    for number, seed in enumerate((1, 1, 2)):
        row = run_eval("level1_matmul/honest", "--problems", TESTS / "problems", "--solutions", TESTS / "solutions",
                       "--device", "cpu", "--check", "--min-calls", str(CALLS), "--seed", str(seed), "--cache", cache,
                       "--allow-library", out=folder / f"seed{number}.jsonl").row("level1_matmul", "honest")
        assert row.seed == seed and row.check is not None
        found.append(row.check.rel_l2_error)
    assert found[0] == found[1] != found[2]
