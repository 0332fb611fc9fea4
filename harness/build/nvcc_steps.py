"""Compiles one CUDA source as nvcc does, by the steps that it lists with `--dryrun`, more of them at a time.

    python nvcc_steps.py AT_ONCE NVCC FLAGS... -c SOURCE -o OBJECT

nvcc compiles for a GPU only when cudafe++ is done with the host's part, although both begin with the same source and
need nothing of each other but a name for the module: cudafe++ makes one up and leaves it in a file. With a name that is
there before, they run side by side, which is a third of the time of a build; no more than AT_ONCE of them at a time.
And each waits for the preprocessor, whose text it reads here while that is written.

nvcc's host compiler waits for the GPU's machine code, only to put it into the object as it is. Here it gets a file
that says where that will be, as if there were none yet, and the code is linked to the object when both are there. Of
the GPU's part it needs what cicc writes for it, so it runs beside ptxas, and beside what cicc does when it has
translated the source. cudafe++ and cicc take hundreds of megabytes, which costs time for each page: they get large
pages, where the system has them. For all this a library is preloaded into them (preloaded.c).

What the list has is checked: for what isn't as it is expected to be (other steps, another order, a toolkit that says it
in another way), nvcc itself is run. It is run by ninja, without the harness's packages.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

PRELOADED = Path(__file__).with_name("preloaded.c")
PREFIX = "#$ "
ASSIGNMENT = re.compile(r"(\w+)=(.*)")
SETTINGS = ("TOP", "CICC_PATH", "NVVMIR_LIBRARY_DIR", "LD_LIBRARY_PATH", "PATH")
"""What nvcc's steps read of what it sets; the rest is for itself."""
NAMED_BY_ITSELF = "--gen_module_id_file"
LARGE_PAGES = ("glibc.malloc.hugetlb=1", "glibc.malloc.top_pad=268435456")
"""And the heap is to grow by many at a time; what isn't used of it takes no memory."""
READERS = ("cudafe++", "cicc")
"""What reads preprocessed sources, and gets the library."""
PREPROCESSED = re.compile(r'-o "([^"]+\.ii)"\s*$')
CODE = "device_code"
"""The name of the files that hold the GPU's machine code alone."""
EMBEDDED = re.compile(r'--embedded-fatbin="([^"]+)"')
OBJECT = re.compile(r'-o "([^"]+)"\s*$')
ASSEMBLY = re.compile(r"^asm\(\n(.*?)\);\n", re.DOTALL | re.MULTILINE)
SYMBOL = re.compile(r"\bfatbinData\[\d+\];")
STUBS = "*.cudafe1.stub.c"
"""What cicc writes for the host compiler."""
FRONT_END_DONE = "front_end_done.*"
"""Files that say of as many processes of cicc that their stubs are there."""
MODULE = re.compile(r'--module_id_file_name\s+"([^"]+)"')

PAUSE_S = 0.01
Result = Future[tuple[int, str]]
"""An exit status and what was printed, when it is there."""


class Unexpected(Exception):
    """The list isn't what this was written for."""


@dataclass(frozen=True)
class Steps:
    """nvcc's steps as shell commands: those for the host up to cudafe++, those for each GPU architecture up to its
    machine code, and what comes then. The host's and each architecture's need nothing of each other."""

    host: tuple[str, ...]
    devices: tuple[tuple[str, ...], ...]
    rest: tuple[str, ...]
    environment: Mapping[str, str]
    module_file: str


def main(arguments: Sequence[str]) -> int:
    """The exit status that nvcc would have; `-c SOURCE -o OBJECT` come last."""
    at_once, command = int(arguments[0]), arguments[1:]
    source = command[-3]
    with ThreadPoolExecutor(1) as meanwhile:
        library = meanwhile.submit(preloaded)
        listed = subprocess.run([*command, "--dryrun", "--keep", "--keep-dir", "."], capture_output=True, text=True,
                                check=False)
    try:
        if listed.returncode:
            raise Unexpected("nvcc lists nothing")
        steps = read(listed.stderr)
    except Unexpected:
        return subprocess.run([command[0], f"--threads={at_once}", *command[1:]], check=False).returncode
    digest = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    Path(steps.module_file).write_text(f"_{digest[:8]}_{re.sub(r'[^A-Za-z0-9]', '_', source)}_{digest[8:16]}")
    return carry_out(steps, at_once, library.result())


def preloaded() -> str:
    """The value of LD_PRELOAD for cudafe++ and cicc: the user's own, and our library; nothing if that can't be made."""
    library = f"./{PRELOADED.stem}.so"
    try:
        made = subprocess.run(["gcc", "-shared", "-fPIC", "-O1", PRELOADED, "-o", library, "-ldl"], capture_output=True,
                              check=False)
    except OSError:
        return ""
    return "" if made.returncode else ":".join(filter(None, [os.environ.get("LD_PRELOAD"), library]))


def read(listing: str) -> Steps:
    """The steps of a listing of `nvcc --dryrun`. Raises Unexpected."""
    environment, commands = {}, []
    for line in listing.splitlines():
        if not line.startswith(PREFIX):
            raise Unexpected(f"not a step: {line}")
        text = line.removeprefix(PREFIX).strip()
        if found := ASSIGNMENT.fullmatch(text):
            if found[1] in SETTINGS:
                environment[found[1]] = found[2]
        else:
            commands.append(text)
    return _grouped([command for command in commands if _tool(command) != "rm"], environment)


def _grouped(commands: Sequence[str], environment: Mapping[str, str]) -> Steps:
    tools = [_tool(command) for command in commands]
    compiler = tools[0] if tools else ""
    if tools[:2] != [compiler, "cudafe++"] or " -E " not in commands[0] or tools.count("fatbinary") != 1:
        raise Unexpected(f"not a compilation for host and GPUs: {tools}")
    end = tools.index("fatbinary")
    devices: list[list[str]] = []
    for tool, command in zip(tools[2:end], commands[2:end], strict=True):
        if tool == compiler and " -E " in command:
            devices.append([command])
        elif devices and tool in ("cicc", "ptxas"):
            devices[-1].append(command)
        else:
            raise Unexpected(f"{tool} for a GPU")
    if tools[end:] != ["fatbinary", compiler] or " -c " not in commands[-1]:
        raise Unexpected(f"behind the machine code come {tools[end:]}")
    modules = {found[1] for command in commands if (found := MODULE.search(command))}
    if len(modules) != 1 or commands[1].count(NAMED_BY_ITSELF) != 1 or not devices:
        raise Unexpected("no name of a module, or several")
    host = (commands[0], commands[1].replace(NAMED_BY_ITSELF, ""))
    return Steps(host, tuple(map(tuple, devices)), tuple(commands[end:]), environment, modules.pop())


def carry_out(steps: Steps, at_once: int, library: str = "") -> int:
    """Runs the steps, so many at a time, and prints what they print, up to the first that fails: the others are ended
    then. Gives its exit status, or 0. With what is `preloaded`, the host compiler begins and files are read earlier."""
    shell = _Shell({**os.environ, **steps.environment, "GLIBC_TUNABLES": _tunables()}, library)
    for stale in Path().glob(FRONT_END_DONE):
        stale.unlink()
    with ThreadPoolExecutor(at_once) as pool, ThreadPoolExecutor(1) as waiting:
        host = pool.submit(shell.run, steps.host)
        fronts, backs = zip(*map(_halves, steps.devices), strict=True)
        translated = [pool.submit(shell.run, front) for front in fronts]
        assembled = [pool.submit(_then, shell, *each) for each in zip(translated, backs, strict=True)]
        apart = Apart.of(steps, shell)
        code = waiting.submit(apart.make_code, assembled) if apart else None
        early = apart.compile_early(host, translated) if apart else None
        for chain in (host, *translated, *assembled):
            if status := _told(shell, *chain.result()):
                return status
    if apart is None or code is None or early is None or not code.result():
        return _told(shell, *shell.run(steps.rest))
    return _told(shell, *apart.compiled(early)) or _told(shell, *apart.join())


def _tunables() -> str:
    """By which glibc's malloc takes large pages; what the user has set stays."""
    return ":".join([*LARGE_PAGES, *filter(None, [os.environ.get("GLIBC_TUNABLES")])])


def _halves(device: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The steps of an architecture up to the last of cicc, and those behind."""
    end = max((index + 1 for index, command in enumerate(device) if _tool(command) == "cicc"), default=len(device))
    return device[:end], device[end:]


def _then(shell: _Shell, before: Result, commands: Sequence[str]) -> tuple[int, str]:
    """What commands give that follow others, if those succeed."""
    return (0, "") if before.result()[0] else shell.run(commands)


def _told(shell: _Shell, status: int, printed: str) -> int:
    """The exit status of steps, when it was told what they printed; if they failed, all that runs is ended."""
    _tell(printed)
    if status:
        shell.end()
    return status


@dataclass(frozen=True)
class Compiled:
    """What the host compiler gave, its exit status and what it printed, and the stubs that it read."""

    stubs: Mapping[str, str]
    status: int
    printed: str


class Apart:
    """The last steps with the GPU's machine code in an object of its own: `compile` needs none of it."""

    def __init__(self, steps: Steps, shell: _Shell, embedded: Path, target: Path) -> None:
        self._fatbinary, self._compile = steps.rest
        self._shell, self._embedded, self._target = shell, embedded, target
        self._wrapper = _without_code(embedded.read_text())

    @classmethod
    def of(cls, steps: Steps, shell: _Shell) -> Apart | None:
        """None where the steps aren't as they are expected to be, or leave more to the linker."""
        embedded, target = EMBEDDED.search(steps.rest[0]), OBJECT.search(steps.rest[-1])
        if embedded is None or target is None or "-flto" in steps.rest[-1]:
            return None
        # Without an image it writes what stands around the machine code.
        status, _ = shell.run([f"fatbinary -64 {embedded[0]}"])
        if status:
            return None
        return cls(steps, shell, Path(embedded[1]), Path(target[1]))

    def compile_early(self, host: Result, translated: Sequence[Result]) -> Compiled | None:
        """The host's part, and that of it which names the code, as soon as there is all that it needs: cudafe++ has
        ended, and each cicc has at least told that it has written its stub. None if one of them failed."""
        if host.result()[0]:
            return None
        while not all(device.done() for device in translated) and _count(FRONT_END_DONE) < len(translated):
            wait(translated, timeout=PAUSE_S)
        if any(device.done() and device.result()[0] for device in translated):
            return None
        stubs = _stubs()
        self._embedded.write_text(SYMBOL.sub('fatbinData[] __attribute__((visibility("hidden")));', self._wrapper))
        return Compiled(stubs, *self._shell.run([self._compile]))

    def compiled(self, early: Compiled) -> tuple[int, str]:
        """When all of cicc has ended: what was compiled early, or anew if a stub has become another one since."""
        unchanged = early.stubs == _stubs()
        return (early.status, early.printed) if unchanged else self._shell.run([self._compile])

    def make_code(self, assembled: Sequence[Result]) -> bool:
        """An object of the machine code, when that is there; False if it isn't, or not as it was expected."""
        if any(device.result()[0] for device in assembled):
            return False
        status, _ = self._shell.run([EMBEDDED.sub(f'--embedded-fatbin="{CODE}.fatbin.c"', self._fatbinary)])
        text = "" if status else Path(f"{CODE}.fatbin.c").read_text()
        found = ASSEMBLY.search(text)
        if found is None or _without_code(text) != self._wrapper:
            return False
        Path(f"{CODE}.c").write_text(f'asm(".globl fatbinData\\n.hidden fatbinData\\n");\n{found[0]}')
        return self._shell.run([f"{self._compiler} -c {CODE}.c -o {CODE}.o"])[0] == 0

    def join(self) -> tuple[int, str]:
        """Makes the object of both."""
        alone = self._target.rename(f"{CODE}.host.o")
        return self._shell.run([f'{self._compiler} -r -nostdlib "{alone}" {CODE}.o -o "{self._target}"'])

    @property
    def _compiler(self) -> str:
        return _program(self._compile)


def _count(pattern: str) -> int:
    return sum(1 for _ in Path().glob(pattern))


def _stubs() -> dict[str, str]:
    """What cicc has written for the host compiler, by name."""
    return {path.name: path.read_text() for path in Path().glob(STUBS)}


def _without_code(text: str) -> str:
    """What stands around the machine code, however long that is."""
    return SYMBOL.sub("fatbinData[0];", ASSEMBLY.sub("", text))


class _Shell:
    """Runs chains of commands, from several threads, until it is ended. With a library for READERS, what they read is
    written meanwhile."""

    def __init__(self, environment: Mapping[str, str], library: str = "") -> None:
        self._environment, self._library = environment, library
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(self, commands: Sequence[str]) -> tuple[int, str]:
        """The exit status of the first that fails, or 0, and what all of them printed."""
        printed, left = "", list(commands)
        while left:
            both = self._piped(left[0], left[1]) if self._library and _feeds(left) else None
            status, more = both or self._finish(self._begin(left[0]))
            printed += more
            if status:
                return status, printed
            del left[:2 if both else 1]
        return 0, printed

    def _piped(self, writer: str, reader: str) -> tuple[int, str] | None:
        """Two commands at a time, the second of which reads what the first writes: the status of the second and what
        both printed. None if not all was written and read: then they are to be run one after the other."""
        found = PREPROCESSED.search(writer)
        if found is None:
            return None
        pipe = Path(f"{found[1]}.pipe")
        try:
            Path(found[1]).touch()  # the reader looks whether it is there, and the library has it open the pipe
            os.mkfifo(pipe)
        except OSError:  # not in this place
            return None
        writing, reading = self._begin(PREPROCESSED.sub(f'-o "{pipe}"', writer)), self._begin(reader)
        with ThreadPoolExecutor(1) as beside:
            written = beside.submit(self._write, writing, reading, pipe)
            status, read = self._finish(reading)
            while not written.done():  # nobody reads any more: lets go a writer that waits for a reader, or will
                os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
                wait([written], timeout=PAUSE_S)
            failed, wrote = written.result()
        pipe.unlink()
        return None if failed or status < 0 else (status, wrote + read)

    def _write(
        self, writing: subprocess.Popen[str] | None, reading: subprocess.Popen[str] | None, pipe: Path
    ) -> tuple[int, str]:
        """What the writer gave. When it fails, or has put a file in the pipe's place, the reader may wait for it, or
        take what it has read for all."""
        status, printed = self._finish(writing)
        if (status or not pipe.is_fifo()) and reading is not None:
            reading.kill()
        return status, printed

    def _begin(self, command: str) -> subprocess.Popen[str] | None:
        """A process for the command; None if the shell was ended."""
        ours = {"LD_PRELOAD": self._library} if self._library and _tool(command) in READERS else {}
        with self._lock:
            if self._ended:
                return None
            process = subprocess.Popen(f"exec {command}", shell=True, env={**self._environment, **ours}, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       errors="replace")
            self._running.add(process)
        return process

    def _finish(self, process: subprocess.Popen[str] | None) -> tuple[int, str]:
        """The exit status and what was printed, when a process that was begun has ended."""
        if process is None:
            return 1, ""
        printed = process.communicate()[0]
        with self._lock:
            self._running.discard(process)
        return process.returncode, printed

    def end(self) -> None:
        """Kills what runs, and begins nothing more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


def _feeds(commands: Sequence[str]) -> bool:
    """Whether the first of several is a preprocessor, and the second reads what it writes."""
    return len(commands) > 1 and " -E " in commands[0] and _tool(commands[1]) in READERS


def _tell(printed: str) -> None:
    sys.stderr.write(printed)
    sys.stderr.flush()


def _tool(command: str) -> str:
    """The name of the program of a command, whose path may be quoted in part."""
    return os.path.basename(_program(command).replace('"', ""))


def _program(command: str) -> str:
    """The program of a command, as it stands there."""
    first = re.match(r'(?:"[^"]*"|[^\s"])+', command)
    return first[0] if first else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
