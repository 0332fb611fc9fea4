from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from inlinebench import __version__
from inlinebench.cli.arguments import RUN, parse
from inlinebench.cli.arguments import parser_of as command_line
from inlinebench.errors import UsageError
from inlinebench.options import OPTIONS, Options
from inlinebench.options.judge import CALLS, SANITIZED_CALLS, JudgeOptions


def test_without_arguments_every_option_has_its_default() -> None:
    assert parse([], {}) == Options(cache=Path("~/.cache/inlinebench").expanduser())


def test_each_argument_sets_its_option() -> None:
    line = ("a b/c --check --shape small --shape odd --device cuda:1 --min-calls 7 --tol 0.5 --seed 9 --variants off "
            "--tf32 --timeout 2.5 --build-timeout 3 --problem-timeout 5.5 --jobs 4 --cache /c --problems /p "
            "--solutions /s --out /o --junit /j --strict --verbose --quiet")
    options = parse(line.split(), {})
    assert options == Options(
        names=("a", "b/c"), check=True, shapes=("small", "odd"), device="cuda:1", min_calls=7, tolerance=0.5, seed=9,
        variants=False, tf32=True, timeout=2.5, build_timeout=3.0, problem_timeout=5.5, jobs=4, cache=Path("/c"),
        problems=Path("/p"), solutions=Path("/s"), out=Path("/o"), junit=Path("/j"), strict=True, verbose=True,
        quiet=True,
    )


@pytest.mark.parametrize(("line", "found"), [
    ("--arch 90", ("90",)), ("--arch 80,90a", ("80", "90a")), ("--arch sm_90 --arch sm_80,90", ("90", "80")),
    ("--arch 100f", ("100f",)), ("", ()),
])
def test_architectures_are_written_as_nvcc_writes_them(line: str, found: tuple[str, ...]) -> None:
    assert parse(line.split(), {}).architectures == found


@pytest.mark.parametrize("text", ["9", "9.0", "compute_90", "90b", "a", "", "90,", "sm_", "native", "1000", "sm_90x"])
def test_an_invalid_architecture_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="write compute capabilities such as 90"):
        parse([f"--arch={text}"], {})


@pytest.mark.parametrize(("line", "said"), [
    ("--device gpu", "write auto, cuda, cuda:N or cpu"), ("--device cpu:1", "write auto"),
    ("--arch 90 --device cpu", "--arch is for GPUs"), ("--arch 90 --devices cpu,cpu", "--arch is for GPUs"),
    ("--build-only --out o", "--out"), ("--build-only --junit j", "--junit"),
    ("--build-only --sanitize memcheck", "--sanitize"), ("--build-only --devices 0,1", "--devices"),
    ("--build-only --profile", "--profile"),
])
def test_options_that_conflict_with_building_only_are_rejected(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(line.split(), {})


def test_the_number_of_calls_follows_from_the_options() -> None:
    assert (parse([], {}).min_calls, parse([], {}).max_calls) == (CALLS, 200)
    assert parse(["--sanitize", "memcheck"], {}).min_calls == SANITIZED_CALLS
    many = parse(["--min-calls", "500"], {})
    assert (many.min_calls, many.max_calls) == (500, 500)  # --min-calls raises the maximum if need be


def test_eager_is_implied_and_repeated_baselines_count_once() -> None:
    line = "--baseline compile --baseline eager --baseline solution:naive --baseline compile"
    assert parse(line.split(), {}).baselines == ("compile", "solution:naive")
    assert parse([], {}).baselines == ()


def test_the_headers_argument_overrides_the_environment() -> None:
    assert not parse([], {}).full_headers
    assert parse([], {"INLINEBENCH_HEADERS": "full"}).full_headers
    assert not parse(["--headers", "auto"], {"INLINEBENCH_HEADERS": "full"}).full_headers


def test_the_cache_argument_overrides_the_environment() -> None:
    environment = {"INLINEBENCH_CACHE": "/from/environment"}
    assert parse([], environment).cache == Path("/from/environment")
    assert parse(["--cache", "/argument"], environment).cache == Path("/argument")
    assert parse(["--cache", "~/x"], {}).cache == Path("~/x").expanduser()


@pytest.mark.parametrize(("text", "value"), [
    ("M=256", 256), ("M=0.5", 0.5), ("M=(1, 2)", (1, 2)), ("M='text'", "text"), ("M=-1", -1), ("M=None", None),
    ("M='a=b'", "a=b"),
])
def test_constants_are_literals(text: str, value: object) -> None:
    assert parse(["--set", text], {}).constants == {"M": value}


@pytest.mark.parametrize("text", ["M", "=1", "1M=2", "M=", "M=x", "M=f()", "M=1+"])
def test_constants_that_are_not_literals_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse(["--set", text], {})


@pytest.mark.parametrize("arguments", [
    ["--min-calls", "0"], ["--min-calls", "x"], ["--timeout", "0"], ["--timeout", "inf"], ["--timeout", "nan"],
    ["--problem-timeout", "0"], ["--problem-timeout", "inf"],
    ["--tol", "-1"], ["--half-width", "0"], ["--half-width", "1"],
    ["--precision", "fp8"], ["--max-memory", "0"], ["--time-budget", "0"], ["--max-calls", "0"],
    ["--baseline", "fast"], ["--baseline", "solution:"], ["--tol", "nan"], ["--jobs", "0"], ["--variants", "maybe"],
    ["--no-such-flag"], ["--seed", "x"],
])
def test_invalid_values_are_refused_with_the_name_of_their_option(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match=arguments[0]):
        parse(arguments, {})


@pytest.mark.parametrize("name", [each.name for each in fields(Options)])
def test_every_option_declares_its_flag_help_rule_and_scope(name: str) -> None:
    option = OPTIONS[name]
    assert option.flag.startswith("--") and option.text and option.text[-1] not in ".("
    assert option.kind.wanted and option.scope in ("job", "judge", "build", "run")
    assert option.kind.const is not None or option.kind.metavar or name == "responses"
    value = getattr(Options(), name)
    assert option.kind.holds(value) or (value is None and option.default is None)


def test_every_option_with_a_group_is_on_the_command_line_and_says_its_default() -> None:
    known = command_line(RUN, "inlinebench run").options
    assert [name for name, each in OPTIONS.items() if not set(each.flags) <= set(known)] == [
        "warmup", "names", "responses"]
    assert [name for name, each in OPTIONS.items() if not each.group] == ["warmup", "names", "responses"]
    silent = [name for name, each in OPTIONS.items() if "(default: " not in each.help]
    assert all(OPTIONS[name].default in (None, False, (), {}) or not OPTIONS[name].group for name in silent)


def test_the_options_of_the_judge_decide_and_those_of_a_run_do_not() -> None:
    assert {name for name, each in OPTIONS.items() if each.scope == "judge"} == {each.name for each in
                                                                                fields(JudgeOptions)}
    for name, option in OPTIONS.items():
        assert option.decides == (option.scope == "judge" or name in ("architectures", "build_timeout", "full_headers"))
    assert Options(tf32=True, quiet=True).judge == JudgeOptions(tf32=True)


def test_defaults_of_variables_are_checked() -> None:
    for name, said in {"HEADERS": "write auto or full", "CACHE_LIMIT": "write a size in GiB"}.items():
        with pytest.raises(UsageError, match=f"INLINEBENCH_{name}=none: {said}"):
            parse([], {f"INLINEBENCH_{name}": "none"})


@pytest.mark.parametrize(("line", "said"), [
    ("--calls 7 --most-calls 30", ["--calls is now called --min-calls; the old name works for one more release",
                                   "--most-calls is now called --max-calls; the old name works for one more release"]),
    ("--calls=7 --most-calls=30", ["--calls is now called --min-calls; the old name works for one more release",
                                   "--most-calls is now called --max-calls; the old name works for one more release"]),
    ("--min-calls 7 --max-calls 30", []),
])
def test_old_names_work_with_a_line_on_stderr(line: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(line.split(), {})
    assert (options.min_calls, options.max_calls) == (7, 30)
    assert capsys.readouterr().err.splitlines() == said


def test_set_and_shape_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude"):
        parse(["--set", "M=1", "--shape", "small"], {})


@pytest.mark.parametrize("other", [["--fuzz", "3"], ["--sanitize", "memcheck"]])
def test_determinism_excludes_runs_of_other_calls(other: list[str]) -> None:
    with pytest.raises(UsageError, match=f"--determinism and {other[0]} exclude each other"):
        parse(["softmax", "--determinism", *other], {})
    assert parse(["softmax", "--determinism"], {}).determinism and not parse(["softmax"], {}).determinism


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_a_solution_file_needs_one_problem(names: list[str]) -> None:
    with pytest.raises(UsageError, match="exactly one problem"):
        parse([*names, "--solution", "file.py"], {})


def test_help_has_an_example_for_each_user_and_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    for argument in ("--help", "--version"):
        with pytest.raises(SystemExit) as left:
            parse([argument], {})
        assert left.value.code == 0
    said = capsys.readouterr().out
    assert said.count("python run_eval.py") == 5
    assert f"inlinebench {__version__}" in said
