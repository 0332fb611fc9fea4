from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.catalog import read
from inlinebench.messages import Evaluate, Fuzz, ProblemAt
from inlinebench.options import Options
from inlinebench.results.result import Environment
from inlinebench.sandbox import given
from inlinebench.scheduler.identity import identity
from inlinebench.scheduler.plan import choose, plan

from ..traces.files import OFFSETS, SEGMENT_WORKLOADS, SEGMENTS, copy_sets

ON = Environment("2.11", "0.1", gpu="H100", driver="580", cuda="13.0")


@pytest.fixture
def job(tmp_path: Path) -> Evaluate:
    """A solution with files of many kinds, which it names in ways that only running it shows."""
    texts = {
        "problems/p.py": "import numpy, first, second\nN = 4\n", "problems/first.py": "", "problems/second.py": "",
        "problems/q.py": "",
        "solutions/p/s.py": "import helper, other\nload(['kernels/k.cu'])\nopen('sca' + 'le.dat')\n",
        "solutions/p/helper.py": "X = 1\n", "solutions/p/other.py": "Y = 2\n", "solutions/p/package/__init__.py": "",
        "solutions/p/package/deep/down/kernel.cu": "// deep\n", "solutions/p/kernels/k.cu": "#include HEADER\n",
        "solutions/p/kernels/k.cuh": "// of k.cu\n", "solutions/p/k.ptx": ".version 8.0\n",
        "solutions/p/k.cubin": "binary\n", "solutions/p/embedded.bin": "for .incbin\n", "solutions/p/scale.dat": "2\n",
        "solutions/q/s.py": "Z = 3\n", "elsewhere/file.cuh": "// linked\n", "elsewhere/folder/file.cuh": "// linked\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "solutions/p/file.cuh").symlink_to("../../elsewhere/file.cuh")
    (tmp_path / "solutions/p/folder").symlink_to(tmp_path / "elsewhere/folder")
    (tmp_path / "solutions/p/endless").symlink_to(".")
    (tmp_path / "solutions/p/itself").symlink_to("itself")
    (tmp_path / "solutions/p/nowhere").symlink_to("nothing")
    return Evaluate("p", "s", ProblemAt(tmp_path / "problems/p.py", "full", {}), tmp_path / "solutions/p/s.py", "full")


def key(job: Evaluate, environment: Environment = ON, **options: object) -> str:
    found = identity(job, Options(**options), environment)  # type: ignore[arg-type]
    assert found is not None
    return found


def folder(job: Evaluate) -> Path:
    assert job.solution is not None
    return job.solution.parent


@pytest.mark.parametrize("name", [
    "problems/p.py", "problems/first.py", "problems/second.py", "solutions/p/s.py", "solutions/p/helper.py",
    "solutions/p/other.py", "solutions/p/package/__init__.py", "solutions/p/package/deep/down/kernel.cu",
    "solutions/p/kernels/k.cu", "solutions/p/kernels/k.cuh", "solutions/p/k.ptx", "solutions/p/k.cubin",
    "solutions/p/embedded.bin", "solutions/p/scale.dat", "elsewhere/file.cuh", "elsewhere/folder/file.cuh",
])
def test_every_file_that_the_solution_is_given_changes_the_key(job: Evaluate, tmp_path: Path, name: str) -> None:
    before = key(job)
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    assert key(job) != before


@pytest.mark.parametrize("name", [SEGMENTS, SEGMENT_WORKLOADS, OFFSETS])
def test_every_file_of_a_definition_changes_the_key(tmp_path: Path, name: Path) -> None:
    folder = copy_sets(tmp_path)
    job = Evaluate("segment_sums", "@reference", ProblemAt(folder / SEGMENTS, "full", {}), None, "full")
    before = key(job)
    assert key(job) == before
    with (folder / name).open("a") as file:
        file.write("\n")
    assert key(job) != before


def test_a_common_header_changes_the_key(job: Evaluate) -> None:
    keys, common = [key(job)], folder(job).parent / "common"
    common.mkdir()
    for name, text in (("sum.cuh", "// one"), ("sum.cuh", "// other"), ("new.cuh", "")):
        (common / name).write_text(text)
        keys.append(key(job))
    assert len(set(keys)) == 4


def test_a_folder_that_is_copied_with_the_common_one_keeps_its_key(job: Evaluate, tmp_path: Path) -> None:
    for name in ("endless", "itself", "nowhere"):
        (folder(job) / name).unlink()
    (folder(job).parent / "common").mkdir()
    (folder(job).parent / "common" / "sum.cuh").write_text("// shared")
    shutil.copytree(folder(job).parent, tmp_path / "copies")
    assert key(replace(job, solution=tmp_path / "copies" / "p" / "s.py")) == key(job)


def test_swapped_contents_change_the_key(job: Evaluate) -> None:
    before, (one, other) = key(job), (folder(job) / "k.ptx", folder(job) / "k.cubin")
    one.rename(folder(job) / "third")
    other.rename(one)
    (folder(job) / "third").rename(other)
    assert key(job) != before


def test_a_change_that_keeps_size_and_modification_time_changes_the_key(
    job: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "SETTLED_NS", 0)  # digests are kept at once
    scale = folder(job) / "scale.dat"
    before, times = key(job), scale.stat()
    time.sleep(0.05)
    scale.write_text("3\n")
    os.utime(scale, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert key(job) != before


def test_two_changes_at_the_same_moment_change_the_key(job: Evaluate) -> None:
    keys = []
    for number in range(10):
        (folder(job) / "scale.dat").write_text(f"{number}\n")
        keys.append(key(job))
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("change", [
    lambda own: (own / "new.txt").write_text(""),
    lambda own: (own / "kernels/k.cuh").unlink(),
    lambda own: (own / "kernels").rename(own / "renamed"),
    lambda own: (own / "nowhere").unlink(),
    lambda own: (own / "k.ptx").rename(own / "kernels/k.ptx"),
])
def test_files_that_come_go_or_move_change_the_key(job: Evaluate, change: Callable[[Path], object]) -> None:
    before = key(job)
    change(folder(job))
    assert key(job) != before


@pytest.mark.parametrize("change", [
    lambda own: (own / "__pycache__").mkdir() or (own / "__pycache__/helper.pyc").write_text("compiled"),
    lambda own: (own / "package/__pycache__").mkdir() or (own / "package/__pycache__/a.pyc").write_text("compiled"),
    lambda own: (own / ".git").mkdir() or (own / ".git/index").write_text("a commit"),
    lambda own: os.utime(own / "helper.py", (1, 1)),
    lambda own: (own.parent / "q/s.py").write_text("Z = 4\n"),
    lambda own: (own.parent / "README.md").write_text("of all"),
    lambda own: (own.parent.parent / "problems/q.py").write_text("N = 5\n"),
    lambda own: (own / "out.jsonl").write_text("{}\n"),
    lambda own: (own / "cache").mkdir() or (own / "cache/library.so").write_text("built"),
])
def test_what_the_solution_is_not_given_does_not_change_the_key(
    job: Evaluate, change: Callable[[Path], object]
) -> None:
    options = {"out": folder(job) / "out.jsonl", "cache": folder(job) / "cache"}
    before = key(job, **options)
    change(folder(job))
    assert key(job, **options) == before


def test_a_renamed_solution_keeps_its_key(job: Evaluate) -> None:
    before = key(job)
    assert job.solution is not None
    renamed = job.solution.rename(job.solution.with_name("t.py"))
    assert key(replace(job, solution=renamed, solution_name="t", shape_name="full")) == before


@pytest.mark.parametrize("links", [True, False])
def test_a_folder_that_is_copied_elsewhere_keeps_its_key(job: Evaluate, tmp_path: Path, links: bool) -> None:
    (folder(job) / "endless").unlink()
    (folder(job) / "itself").unlink()
    (folder(job) / "nowhere").unlink()
    copy = tmp_path / "copies" / "p"
    shutil.copytree(folder(job), copy, symlinks=links)
    if links:
        (copy.parent.parent / "copies/elsewhere").mkdir()
        (copy / "file.cuh").unlink()
        (copy / "file.cuh").symlink_to(tmp_path / "elsewhere/file.cuh")
    assert key(replace(job, solution=copy / "s.py")) == key(job)


def test_a_sample_of_kernelbench_s_layout_has_a_key_of_its_own_file_only(tmp_path: Path) -> None:
    for name in ("problems/level1/1_A.py", "solutions/level_1_problem_1_sample_0_kernel.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("N = 4\n")

    def keys() -> dict[str, str]:
        options = Options(problems=tmp_path / "problems", solutions=tmp_path / "solutions")
        jobs = plan(choose(options, read(options.problems, options.solutions)), options, "cuda:0").jobs
        return {job.solution_name: key(job) for job in jobs}

    before = keys()
    (tmp_path / "solutions/level_1_problem_1_sample_1_kernel.py").write_text("N = 5\n")
    after = keys()
    assert len(after) == 2 and after["sample_0"] == before["sample_0"] != after["sample_1"]
    (tmp_path / "solutions/level_1_problem_1_sample_0_kernel.py").write_text("N = 6\n")
    assert keys()["sample_0"] != before["sample_0"] and keys()["sample_1"] == after["sample_1"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 5), ("MOST_BYTES", 20)])
def test_a_folder_beyond_the_limits_has_no_key(
    job: Evaluate, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(given, limit, value)
    assert identity(job, Options(), ON) is None
    assert identity(replace(job, alone=True), Options(), ON) is not None or limit == "MOST_BYTES"


def test_a_large_file_is_read_in_parts(job: Evaluate) -> None:
    before = key(job)
    with (folder(job) / "weights.bin").open("wb") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    assert key(job) != before
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_pipe_in_the_folder_is_not_read(job: Evaluate) -> None:
    before = key(job)
    os.mkfifo(folder(job) / "pipe")
    assert key(job) != before


def test_a_link_to_a_file_without_an_end_is_not_read(job: Evaluate) -> None:
    for name in ("/dev/zero", "/proc/kmsg"):
        (folder(job) / Path(name).name).symlink_to(name)
    with suppress(PermissionError):
        Path("/proc/kmsg").open("rb").close()
        assert key(job)


def test_the_sources_of_rivals_change_the_key(job: Evaluate) -> None:
    assert len({key(job), key(replace(job, rivals=("a",))), key(replace(job, rivals=("b",)))}) == 3


def test_a_library_solution_has_another_key_than_the_same_file_under_another_name(job: Evaluate) -> None:
    assert key(replace(job, solution_name="library")) != key(job)


@pytest.mark.parametrize("options", [
    {"check": True}, {"min_calls": 3}, {"tolerance": 0.1}, {"tf32": True}, {"seed": 5}, {"baselines": ("compile",)},
    {"allow_library": True}, {"trust": True}, {"full_headers": True},
])
def test_options_that_affect_the_result_change_the_key(job: Evaluate, options: dict[str, object]) -> None:
    assert key(job, **options) != key(job)


@pytest.mark.parametrize("options", [
    {"quiet": True}, {"out": Path("x")}, {"jobs": 3}, {"resume": True, "out": Path("y")}, {"shard": (1, 2)},
    {"device": "cuda:1"},
])
def test_options_that_do_not_affect_the_result_do_not_change_the_key(job: Evaluate, options: dict[str, object]) -> None:
    assert key(job, **options) == key(job)


def test_shape_precision_gpu_and_versions_change_the_key(job: Evaluate) -> None:
    others = [key(replace(job, problem=replace(job.problem, shape="odd"))),
              key(replace(job, problem=replace(job.problem, constants={"N": 5}))),
              key(replace(job, problem=replace(job.problem, precision="fp16"))),
              key(replace(job, problem=replace(job.problem, backward=True))),
              key(replace(job, solution=None)), key(job, replace(ON, gpu="A100")), key(job, replace(ON, torch="2.12"))]
    assert len({key(job), *others}) == len(others) + 1
    assert key(job, replace(ON, peaks="4 TB/s")) == key(job)


def test_the_number_of_drawn_sizes_changes_the_key(job: Evaluate) -> None:
    drawn = [replace(job, fuzz=Fuzz(count, {}, job.problem)) for count in (8, 9)]
    assert len({key(each) for each in (job, *drawn)}) == 3


def test_a_missing_file_has_no_key(job: Evaluate) -> None:
    job.problem.path.unlink()
    assert identity(job, Options(), ON) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_cannot_be_read_leaves_no_key(job: Evaluate) -> None:
    (folder(job) / "scale.dat").chmod(0)
    assert identity(job, Options(), ON) is None


def test_a_solution_that_cannot_be_read_has_no_key(job: Evaluate) -> None:
    (folder(job) / "s.py").unlink()
    assert identity(job, Options(), ON) is None


def test_a_rival_that_cannot_be_read_leaves_no_key(job: Evaluate) -> None:
    assert identity(replace(job, rivals=("a", None)), Options(), ON) is None


def test_problem_files_that_name_each_other_have_a_key(job: Evaluate, tmp_path: Path) -> None:
    (tmp_path / "problems/first.py").write_text("import p\nimport first\n")
    assert key(job)
