"""nvcc's steps as it lists them: what is recognised, what is left to nvcc, and how they are carried out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.build import nvcc_steps
from harness.build.nvcc_steps import Steps, Unexpected, carry_out, preloaded, read

LISTING = """\
#$ _SPACE_=
#$ TOP=/cuda/bin/..
#$ CICC_PATH=/cuda/bin/../nvvm/bin
#$ LIBRARIES=  "-L/cuda/lib64/stubs" "-L/cuda/lib64"
#$ PATH=/cuda/bin:/usr/bin
#$ "/a folder"/gcc -std=c++17 -E -x c++ -D__CUDACC__ "cuda.cu" -o "./cuda.cpp4.ii"
#$ cudafe++ --c++17 --gen_module_id_file --module_id_file_name "./cuda.module_id" "./cuda.cpp4.ii"
#$ "/a folder"/gcc -D__CUDA_ARCH__=800 -E -x c++ "cuda.cu" -o "./cuda.compute_80.cpp1.ii"
#$ "$CICC_PATH/cicc" -arch compute_80 --module_id_file_name "./cuda.module_id" -o "./cuda.compute_80.ptx"
#$ ptxas -arch=sm_80 "./cuda.compute_80.ptx" -o "./cuda.compute_80.cubin"
#$ "/a folder"/gcc -D__CUDA_ARCH__=900 -E -x c++ "cuda.cu" -o "./cuda.compute_90.cpp1.ii"
#$ "$CICC_PATH/cicc" -arch compute_90 --module_id_file_name "./cuda.module_id" -o "./cuda.compute_90.ptx"
#$ ptxas -arch=sm_90 "./cuda.compute_90.ptx" -o "./cuda.compute_90.cubin"
#$ ptxas -arch=sm_90a "./cuda.compute_90.ptx" -o "./cuda.compute_90a.cubin"
#$ fatbinary -64 "--image3=kind=elf,sm=80,file=./cuda.compute_80.cubin" --embedded-fatbin="./cuda.fatbin.c"
#$ rm ./cuda.fatbin
#$ "/a folder"/gcc -c -x c++ "./cuda.compute_90.cudafe1.cpp" -o "cuda.o"
"""


def test_the_host_s_steps_and_each_architecture_s_are_told_apart() -> None:
    steps = read(LISTING)
    assert [command.split()[0] for command in steps.host] == ['"/a', "cudafe++"]
    assert "gen_module_id_file" not in steps.host[1]
    assert [len(device) for device in steps.devices] == [3, 4]
    assert all(f"compute_{name}" in device[1] for name, device in zip((80, 90), steps.devices, strict=True))
    assert [command.split()[0] for command in steps.rest] == ["fatbinary", '"/a']
    assert steps.module_file == "./cuda.module_id"
    assert steps.environment == {
        "TOP": "/cuda/bin/..", "CICC_PATH": "/cuda/bin/../nvvm/bin", "PATH": "/cuda/bin:/usr/bin"}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("architectures", [["90"], ["80", "90"], ["80", "89", "90a"]])
def test_what_nvcc_says_here_is_understood(architectures: list[str], tmp_path: Path) -> None:
    (tmp_path / "cuda.cu").write_text("__global__ void k() {}\n")
    codes = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in architectures]
    listed = subprocess.run(["nvcc", *codes, "-c", "cuda.cu", "-o", "cuda.o", "--dryrun", "--keep", "--keep-dir", "."],
                            capture_output=True, text=True, check=True, cwd=tmp_path)
    assert len(read(listed.stderr).devices) == len(architectures)


def without(start: str) -> str:
    return "".join(f"{line}\n" for line in LISTING.splitlines() if not line.startswith(start))


@pytest.mark.parametrize("listing", [
    "", "nvcc warning : an old architecture\n" + LISTING, without("#$ cudafe++"), without("#$ fatbinary"),
    without('#$ "/a folder"/gcc -c'), without('#$ "/a folder"/gcc -std'), LISTING + "#$ nvlink cuda.o\n",
    LISTING.replace("#$ ptxas -arch=sm_80", "#$ tileas -arch=sm_80"), LISTING.replace("--gen_module_id_file", ""),
    LISTING.replace("module_id", "another_id", 1), "#$ fatbinary\n",
], ids=range(11))
def test_a_list_that_is_not_as_expected_is_left_to_nvcc(listing: str) -> None:
    with pytest.raises(Unexpected):
        read(listing)


FAIL = "sh -c 'echo {}; exit {}'"


def said(steps: Steps, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return carry_out(steps, 3), capsys.readouterr().err


def test_steps_side_by_side_need_each_other_only_where_they_meet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each chain waits for a file of the other, so one after the other they would never end."""
    wait = "sh -c 'for i in $(seq 200); do [ -e {0} ] && break; sleep 0.05; done; cat {0}'"
    one, two = tmp_path / "one", tmp_path / "two"
    steps = Steps((f"echo from the host > {one}", wait.format(two)), ((f"echo $TOLD > {two}", wait.format(one)),),
                  (f"cat {one} {two}",), {"TOLD": "from the device"}, "")
    assert said(steps, capsys) == (0, "from the device\nfrom the host\nfrom the host\nfrom the device\n")


@pytest.mark.parametrize(("host", "device", "rest", "expected"), [
    (FAIL.format("bad", 3), FAIL.format("worse", 4), "true", (3, "bad\n")),
    ("echo a warning", FAIL.format("bad", 4), "true", (4, "a warning\nbad\n")),
    ("true", "true", FAIL.format("late", 5), (5, "late\n")),
])
def test_the_first_failure_is_what_is_told(
    host: str, device: str, rest: str, expected: tuple[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(Steps((host, "true"), ((device,),), (rest, "echo never"), {}, ""), capsys) == expected


def test_what_runs_when_something_has_failed_is_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = tmp_path / "late"
    steps = Steps((FAIL.format("bad", 3),), (("sleep 30", f"touch {late}"), (f"touch {late}.too",)), ("true",), {}, "")
    assert carry_out(steps, 2) == 3
    assert capsys.readouterr().err == "bad\n"
    assert not late.exists()


def test_nvcc_is_run_where_its_list_is_not_understood(tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\ncase "$*" in *--dryrun*) echo strange >&2 ;; *) echo compiled "$@"; exit 7 ;; esac\n')
    nvcc.chmod(0o755)
    done = subprocess.run([sys.executable, "-I", "-S", nvcc_steps.__file__, "3", nvcc, "-c", "cuda.cu", "-o", "cuda.o"],
                          capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "compiled --threads=3 -c cuda.cu -o cuda.o\n")


KERNEL = """
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
extern "C" void run(float* x) { twice<<<1, 32>>>(x); }
"""
CODES = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in ("80", "90")]
COMPILE = ["nvcc", *CODES, "--compiler-options", "-fPIC", "-c", "cuda.cu", "-o", "cuda.o"]
with_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cuda.cu").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def linked() -> tuple[set[str], bytes]:
    """What a library of the object exports and needs, and the machine code in it."""
    run("g++", "-shared", "cuda.o", "-o", "cuda.so")
    run("objcopy", "-O", "binary", "--only-section=.nv_fatbin", "cuda.so", "code")
    listed = run("nm", "--dynamic", "cuda.so")
    return {line[17:] for line in listed.splitlines()}, Path("code").read_bytes()


def steps_here() -> Steps:
    listed = subprocess.run([*COMPILE, "--dryrun", "--keep", "--keep-dir", "."], capture_output=True, text=True,
                            check=True)
    steps = read(listed.stderr)
    Path(steps.module_file).write_text("_of_a_test_")
    return steps


@with_nvcc
def test_an_object_of_which_the_machine_code_was_made_apart_is_nvcc_s(place: Path) -> None:
    assert carry_out(steps_here(), 3, preloaded()) == 0
    ours = linked()
    assert (place / "device_code.o").exists()
    run(*COMPILE)
    assert ours == linked()
    assert "T run" in ours[0] and len(ours[1]) > 1000


def with_cicc(steps: Steps, folder: Path, script: str) -> Steps:
    """The steps with another cicc; `$real` is the one that it stands before."""
    folder.mkdir()
    another = folder / "cicc"
    another.write_text(f'#!/bin/sh\nreal="{folder / "real"}"\n{script}\n')
    another.chmod(0o755)
    places = {"TOP": steps.environment["TOP"], "CICC_PATH": steps.environment["CICC_PATH"]}
    (folder / "real").symlink_to(Path(places["CICC_PATH"].replace("$TOP", places["TOP"])) / "cicc")
    return Steps(steps.host, steps.devices, steps.rest, {**steps.environment, "CICC_PATH": str(folder)},
                 steps.module_file)


@with_nvcc
def test_cicc_tells_when_the_host_compiler_has_what_it_needs(place: Path) -> None:
    """Its stubs are what they are when it ends."""
    steps = with_cicc(steps_here(), place / "tools", '"$real" "$@"')
    assert carry_out(steps, 3, preloaded()) == 0
    assert len(list(place.glob("front_end_done.*"))) == len(CODES)
    ours = linked()
    run(*COMPILE)
    assert ours == linked()


ASKING = """
import ctypes, mmap
area = mmap.mmap(-1, {size}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
lines = iter(open("/proc/self/smaps"))
for line in lines:
    begin, _, end = line.partition(" ")[0].partition("-")
    if end and int(begin, 16) <= address < int(end, 16):
        print(next(each for each in lines if each.startswith("VmFlags")))
"""
"""Prints what the system knows of memory that a process has asked for."""


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="no large pages")
@pytest.mark.parametrize(("preloaded", "size", "large"), [(True, 32 << 20, True), (True, 8192, False),
                                                          (False, 32 << 20, False)])
def test_large_pages_are_asked_for_much_memory(tmp_path: Path, preloaded: bool, size: int, large: bool) -> None:
    library = tmp_path / "preloaded.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", nvcc_steps.PRELOADED, "-o",
                    library], check=True)
    done = subprocess.run([sys.executable, "-c", ASKING.format(size=size)], capture_output=True, text=True, check=True,
                          env={**os.environ, "LD_PRELOAD": str(library) if preloaded else ""})
    assert done.stderr == ""
    assert (" hg " in done.stdout) == large, done.stdout


@with_nvcc
@pytest.mark.parametrize("made", [True, False])
def test_cicc_is_preloaded_and_what_the_user_has_set_stays(
    place: Path, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the library can't be made."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.perturb=1")
    monkeypatch.setenv("LD_PRELOAD", "libc.so.6")
    if not made:
        monkeypatch.setattr(nvcc_steps, "PRELOADED", place / "missing.c")
    steps = with_cicc(steps_here(), place / "tools", f"env >> {place}/said; exit 1")
    assert carry_out(steps, 3, preloaded()) == 1
    variables = dict(line.partition("=")[::2] for line in (place / "said").read_text().splitlines())
    assert variables["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=268435456:glibc.malloc.perturb=1"
    assert variables["LD_PRELOAD"] == ("libc.so.6:./preloaded.so" if made else "libc.so.6")


WRITER = """import os, sys, time
output = sys.argv[sys.argv.index("-o") + 1]
{begin}
with open(output, "w") as file:
    file.write("text " * 100_000)
print("written")
{end}
"""
READER = """import os, sys
{begin}
name = sys.argv[1] + ".pipe" * {piped}
print(len(open(name).read()) if {reads} else "nothing")
{end}
"""
KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def piped(
    place: Path, *, writer: str = "", reader: str = "", knows: bool = True, reads: bool = True,
    begin: tuple[str, str] = ("", ""),
) -> tuple[int, str]:
    """What a shell gives of a preprocessor and a cicc that begin and end so. One that doesn't know of pipes reads the
    file."""
    (place / "write.py").write_text(WRITER.format(begin=begin[0], end=writer))
    there = f"({knows} and os.path.exists(sys.argv[1] + '.pipe'))"
    (place / "read.py").write_text(READER.format(begin=begin[1], end=reader, piped=there, reads=reads))
    cicc = place / "cicc"
    cicc.write_text(f'#!/bin/sh\nexec {sys.executable} {place}/read.py "$@"\n')
    cicc.chmod(0o755)
    shell = nvcc_steps._Shell(dict(os.environ), "./none.so")
    status, printed = shell.run([f'{sys.executable} {place}/write.py -E -o "{place}/source.ii"',
                                 f'{cicc} "{place}/source.ii"'])
    assert not list(place.glob("*.pipe"))
    return status, "".join(line for line in printed.splitlines(keepends=True) if "cannot be preloaded" not in line)


def test_what_one_writes_the_other_reads_meanwhile(place: Path) -> None:
    assert piped(place) == (0, "written\n500000\n")
    assert (place / "source.ii").stat().st_size == 0, "there was a pipe"


def test_a_reader_that_refuses_what_it_reads_is_heard_once(place: Path) -> None:
    assert piped(place, reader="sys.exit(3)") == (3, "written\n500000\n")


@pytest.mark.parametrize("ending", ["sys.exit(4)", KILLED])
def test_when_the_writer_fails_nothing_is_read(place: Path, ending: str) -> None:
    status, printed = piped(place, writer=ending)
    assert status == (4 if "exit" in ending else -9) and "500000" not in printed


def test_a_reader_that_fails_before_the_writer_begins_is_heard_once(place: Path) -> None:
    assert piped(place, begin=("time.sleep(0.7)", "sys.exit(7)")) == (7, "written\n")


def test_a_writer_that_puts_a_file_in_the_pipe_s_place_is_run_alone(place: Path) -> None:
    """As a compiler that writes its output elsewhere, and moves it when it is whole."""
    moves = 'open(output + ".tmp", "w").write("text " * 100_000); os.replace(output + ".tmp", output); sys.exit()'
    assert piped(place, begin=(moves, "")) == (0, "500000\n")


def test_a_writer_that_fails_before_it_writes_holds_up_nobody(place: Path) -> None:
    shell = nvcc_steps._Shell(dict(os.environ), "./none.so")
    cicc = place / "cicc"
    cicc.write_text('#!/bin/sh\nexec cat "$1.pipe"\n')
    cicc.chmod(0o755)
    status, _ = shell.run([f'sh -c "exit 5" -E -o "{place}/source.ii"', f'{cicc} "{place}/source.ii"'])
    assert status == 5


@pytest.mark.parametrize(("knows", "reads", "found"), [(False, True, "500000"), (True, False, "nothing")])
def test_a_reader_that_leaves_the_pipe_alone_is_run_behind_the_writer(
    place: Path, knows: bool, reads: bool, found: str
) -> None:
    """Another version, say, into which the library can't be loaded."""
    assert piped(place, knows=knows, reads=reads) == (0, f"written\n{found}\n")
    assert (place / "source.ii").stat().st_size == 500_000


def test_a_reader_that_is_killed_is_run_once_more(place: Path) -> None:
    once = f"""
if not os.path.exists("{place}/died"):
    open("{place}/died", "w")
    {KILLED}"""
    assert piped(place, reader=once) == (0, "written\n500000\n")


@with_nvcc
@pytest.mark.parametrize("broken", ["#include <no_such_header.h>\n", "__global__ void k() { unknown(); }\n"])
def test_an_error_is_told_once_with_the_library_and_without(
    place: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "cuda.cu").write_text(KERNEL + broken)
    told = []
    for library in ("", preloaded()):
        assert carry_out(steps_here(), 3, library) != 0
        told.append(capsys.readouterr().err)
    assert told[0] == told[1] and told[0].count("error") <= 2


EARLY = '''
for each; do case $each in *.stub.c) echo "{before}" > "$each" ;; esac; done
: > front_end_done.$$
n=0
while [ ! -e ran ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
exec "$real" "$@"
'''


def with_counted_compiler(steps: Steps, place: Path) -> Steps:
    """The steps with a host compiler that notes each compilation's exit status in `ran`."""
    compiler = place / "gcc"
    compiler.write_text(f'#!/bin/sh\n{shutil.which("gcc")} "$@"\nstatus=$?\n'
                        'case "$*" in *"-c -x c++"*) echo $status >> ran ;; esac\nexit $status\n')
    compiler.chmod(0o755)
    fatbinary, last = steps.rest
    rest = (fatbinary, f'"{compiler}"{last.removeprefix("gcc")}')
    return Steps(steps.host, steps.devices, rest, steps.environment, steps.module_file)


@with_nvcc
@pytest.mark.parametrize("before", ["#error too early", "int too_early;"])
def test_what_was_compiled_too_early_is_compiled_again(place: Path, before: str) -> None:
    """With a cicc that tells before it has written what it will write, and waits until that was compiled."""
    steps = with_cicc(steps_here(), place / "tools", EARLY.format(before=before))
    assert carry_out(with_counted_compiler(steps, place), 3) == 0
    assert (place / "ran").read_text().split() == ["1" if "#error" in before else "0", "0"]
    ours = linked()
    run(*COMPILE)
    assert ours == linked()


@with_nvcc
def test_what_an_earlier_run_has_told_does_not_count(place: Path) -> None:
    for number in range(len(CODES)):
        (place / f"front_end_done.{number}").touch()
    steps = with_cicc(steps_here(), place / "tools", 'sleep 2; exec "$real" "$@"')
    assert carry_out(with_counted_compiler(steps, place), 3) == 0
    assert (place / "ran").read_text().split() == ["0"]


@with_nvcc
def test_machine_code_in_another_form_is_compiled_as_nvcc_does_it(place: Path) -> None:
    """A toolkit whose fatbinary writes something else around it."""
    tools = place / "tools"
    tools.mkdir()
    steps = steps_here()
    found = shutil.which("fatbinary", path=steps.environment["PATH"])
    another = tools / "fatbinary"
    another.write_text(f'#!/bin/sh\n{found} "$@" || exit\ncase "$*" in *image*) '
                       "for each in *.fatbin.c; do echo 'int another;' >> $each; done ;; esac\n")
    another.chmod(0o755)
    environment = {**steps.environment, "PATH": f"{tools}:{steps.environment['PATH']}"}
    assert carry_out(Steps(steps.host, steps.devices, steps.rest, environment, steps.module_file), 3) == 0
    assert not (place / "device_code.o").exists()
    symbols, code = linked()
    assert {"T run", "B another"} <= symbols and len(code) > 1000


@with_nvcc
def test_what_the_host_compiler_refuses_is_told_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "cuda.cu").write_text(KERNEL + 'void broken() { asm("notaninstruction"); }\n')
    assert carry_out(steps_here(), 3, preloaded()) != 0
    assert capsys.readouterr().err.count("no such instruction") == 1
