"""Defaults of options from `[tool.inlinebench]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.cli.arguments import CHECK, LIST, parse
from inlinebench.errors import UsageError
from inlinebench.options import PROFILES

from .test_bad_inputs import here, inlinebench, last_line, write

__all__ = ["here"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with defaults; the current folder is below it."""
    (tmp_path / "below/deeper").mkdir(parents=True)
    write(tmp_path / "below/pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    monkeypatch.chdir(tmp_path / "below/deeper")
    return tmp_path / "pyproject.toml"


def test_the_nearest_table_above_the_current_folder_has_the_defaults(project: Path) -> None:
    write(project, '[tool.inlinebench]\nproblems = "mine"\nmin-calls = 7\nstrict = true\ntf32 = false\n'
                   'shape = ["small", "odd"]\nhalf-width = 0.1\nset = []\nvariants = "off"\n')
    options = parse([], {})
    assert (options.problems, options.min_calls, options.half_width) == (project.parent / "mine", 7, 0.1)
    assert (options.strict, options.tf32, options.shapes, options.variants) == (True, False, ("small", "odd"), False)


def test_the_command_line_replaces_a_default_and_does_not_add_to_it(project: Path) -> None:
    write(project, '[tool.inlinebench]\nshape = ["small"]\nmin-calls = 7\n')
    options = parse(["--shape", "odd", "--min-calls", "9"], {})
    assert (options.shapes, options.min_calls) == (("odd",), 9)


def test_a_command_ignores_defaults_of_options_that_it_lacks(project: Path) -> None:
    write(project, '[tool.inlinebench]\nbaseline = "compile"\nmin-calls = 7\n')
    assert parse([], {}).baselines == ("compile",)
    assert (parse([], {}, CHECK).baselines, parse([], {}, CHECK).min_calls) == ((), 7)
    assert parse([], {}, LIST).list_only


def test_an_option_whose_value_is_optional_has_one_or_is_a_switch(project: Path) -> None:
    for text, profile in (("true", PROFILES), ("false", None), ('"reports"', project.parent / "reports")):
        write(project, f"[tool.inlinebench]\nprofile = {text}\n")
        assert parse([], {}).profile == profile


@pytest.mark.parametrize(("text", "said"), [
    ("min-cals = 3", "has the unknown key 'min-cals'; did you mean min-calls?"),
    ("zzz = 3", "has the unknown key 'zzz'"), ("help = true", "unknown key 'help'"),
    ('strict = "yes"', "strict = 'yes': write true or false"),
    ("min-calls = true", "min-calls = True: write what follows --min-calls"),
    ('min-calls = "many"', "--min-calls many: write a positive integer"),
    ("min-calls = ", "correct its table"),
])
def test_unusable_defaults_are_refused(project: Path, text: str, said: str) -> None:
    write(project, f"[tool.inlinebench]\n{text}\n")
    with pytest.raises(UsageError, match=said):
        parse([], {})


def test_old_names_work_with_a_line_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, '[tool.inlinebench]\ncalls = 7\nmost-calls = 30\n')
    options = parse([], {})
    assert (options.min_calls, options.max_calls) == (7, 30)
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "calls is now called min-calls; the old name works for one more release",
        "most-calls is now called max-calls; the old name works for one more release"]


def test_the_command_uses_them(here: Path) -> None:
    write(here / "pyproject.toml", '[tool.inlinebench]\nlevel = [77]\n')
    done = inlinebench(here, "list")
    assert done.returncode == 2 and "no problem of level 77" in last_line(done)
