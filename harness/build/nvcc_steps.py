"""Compiles one CUDA source as nvcc does, by the steps that it lists with `--dryrun`, more of them at a time.

    python nvcc_steps.py AT_ONCE NVCC FLAGS... -c SOURCE -o OBJECT

nvcc compiles for a GPU only when cudafe++ is done with the host's part, although both begin with the same source and
need nothing of each other but a name for the module: cudafe++ makes one up and leaves it in a file. With a name that is
there before, they run side by side, which is a third of the time of a build; no more than AT_ONCE of them at a time.

And nvcc's host compiler waits for the GPU's machine code, only to put it into the object as it is. Here it gets a file
that says where that will be, as if there were none yet, and the code is linked to the object when both are there. Of
the GPU's part it needs what cicc writes for it, so it runs beside ptxas, and beside what cicc does when it has
translated the source: a library that is preloaded into cicc (preloaded.c) has it tell when that is.

cudafe++ and cicc take hundreds of megabytes, which costs time for each page. They get large pages, where the system has
them, the one by a setting of glibc's, the other by that library.

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
    return carry_out(steps, at_once)


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


def carry_out(steps: Steps, at_once: int) -> int:
    """Runs the steps, so many at a time, and prints what they print, up to the first that fails: the others are ended
    then. Gives its exit status, or 0."""
    shell = _Shell({**os.environ, **steps.environment, "GLIBC_TUNABLES": _tunables()})
    for stale in Path().glob(FRONT_END_DONE):
        stale.unlink()
    with ThreadPoolExecutor(at_once) as pool, ThreadPoolExecutor(1) as waiting:
        library = waiting.submit(_preloaded, shell, _program(steps.rest[-1]))
        host = pool.submit(shell.run, steps.host)
        fronts, backs = zip(*map(_halves, steps.devices), strict=True)
        translated = [pool.submit(shell.run, front, library) for front in fronts]
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


def _preloaded(shell: _Shell, compiler: str) -> str:
    """The value of LD_PRELOAD with which cicc is run: the user's own, and our library if it can be made."""
    library = f"./{PRELOADED.stem}.so"
    status, _ = shell.run([f'{compiler} -shared -fPIC -O1 "{PRELOADED}" -o {library}'])
    return ":".join(filter(None, [os.environ.get("LD_PRELOAD"), "" if status else library]))


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
    """Runs chains of commands, from several threads, until it is ended."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(self, commands: Sequence[str], preloaded: Future[str] | None = None) -> tuple[int, str]:
        """The exit status of the first that fails, or 0, and what all of them printed; `preloaded` is for cicc."""
        printed = ""
        for command in commands:
            environment = self._environment
            if preloaded is not None and _tool(command) == "cicc":
                environment = {**environment, "LD_PRELOAD": preloaded.result()}
            with self._lock:
                if self._ended:
                    return 1, printed
                process = subprocess.Popen(f"exec {command}", shell=True, env=environment, text=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                           errors="replace")
                self._running.add(process)
            printed += process.communicate()[0]
            with self._lock:
                self._running.discard(process)
            if process.returncode:
                return process.returncode, printed
        return 0, printed

    def end(self) -> None:
        """Kills what runs, and begins nothing more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


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
