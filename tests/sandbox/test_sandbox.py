"""Real processes in a sandbox: each protection against a violation, and harmless programs that must work."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path

import pytest

from inlinebench.sandbox.given import readable_for
from inlinebench.sandbox.policy import REQUIRED, Policy, Sandbox, clean_environment, is_narrow

from .running import PROTECTIONS, ROOT, run

pytestmark = pytest.mark.skipif(
    not {str(name) for name in REQUIRED} <= set(PROTECTIONS), reason="this machine does not offer the whole sandbox"
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("token")
    return path


@pytest.mark.parametrize("act", [
    "open({path!r}).read()", "open({path!r}, 'a')", "open({path!r}, 'w')", "os.unlink({path!r})",
    "os.truncate({path!r}, 0)", "os.rename({path!r}, 'here')", "os.symlink({path!r}, 'link'); open('link').read()",
    "os.listdir(os.path.dirname({path!r}))", "os.mkdir({path!r} + '-folder')",
    "os.system('cat ' + {path!r}) and open({path!r})",
])
def test_files_outside_are_inaccessible(scratch: Path, secret: Path, act: str) -> None:
    assert "PermissionError" in run(f"import os; {act.format(path=str(secret))}; print('done')", scratch)
    assert secret.read_text() == "token"


@pytest.mark.parametrize("act", [
    "open('file', 'w').write('x'); print(open('file').read())",
    "import tempfile; print(open(tempfile.mkstemp()[1], 'w').write('x') and 'x')",
    "import os, subprocess; print(subprocess.run(['echo', 'x'], capture_output=True, text=True).stdout)",
    "import multiprocessing; open('/dev/null', 'w').write('y'); print('x')",
    "import threading; t = threading.Thread(target=print, args=('x',)); t.start(); t.join()",
    "import os; os.kill(os.getpid(), 0); print('x')",
    "import multiprocessing as m, time; p = m.Process(target=time.sleep, args=(9,)); p.start(); p.kill(); print('x')",
    "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1).decode())",
    "import os; pid = os.posix_spawn('/bin/echo', ['echo', 'x'], {}); os.waitpid(pid, 0)",
    "import concurrent.futures as c; print(c.ThreadPoolExecutor(8).submit(lambda: 'x').result())",
    "import concurrent.futures as c; print(c.ProcessPoolExecutor(2).submit(str, 'x').result())",
    "import signal; signal.signal(signal.SIGALRM, lambda *_: print('x')); signal.setitimer(signal.ITIMER_REAL, 0.01); "
    "signal.pause()",
    "print('x', end=''); open('/dev/shm/probe', 'w').write('y')",
])
def test_harmless_programs_work(scratch: Path, act: str) -> None:
    assert run(act, scratch) == "x"


def test_readable_files_are_not_writable(scratch: Path, secret: Path) -> None:
    assert run(f"print(open({str(secret)!r}).read())", scratch, readable=(secret,)) == "token"
    assert "PermissionError" in run(f"open({str(secret)!r}, 'a')", scratch, readable=(secret,))


def test_shared_memory_is_private(scratch: Path) -> None:
    name = f"/dev/shm/inlinebench-{os.getpid()}"
    assert run(f"open({name!r}, 'w').write('x'); print('x')", scratch) == "x"
    assert not Path(name).exists()


def test_network_connections_fail(scratch: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5); print('connected')"
        assert "Error" in run(code, scratch)


def test_connections_to_unix_sockets_fail(scratch: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory() as folder:
        server.bind(f"{folder}/socket")
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({folder + '/socket'!r}); print('connected')"
        assert "PermissionError" in run(code, scratch)


@pytest.mark.parametrize("act", [
    "os.kill({pid}, signal.SIGCONT)", "os.killpg(os.getpgid({pid}), signal.SIGCONT)",
    "open('/proc/{pid}/mem', 'rb').read(1)", "open('/proc/{pid}/environ').read()", "os.readlink('/proc/{pid}/fd/0')",
    "open('/proc/{pid}/comm', 'w').write('x')", "open('/proc/sys/kernel/core_pattern', 'w')",
])
def test_other_processes_are_inaccessible(scratch: Path, act: str) -> None:
    output = run(f"import os, signal; {act.format(pid=os.getpid())}; print('done')", scratch)
    assert "PermissionError" in output or "FileNotFoundError" in output or "ProcessLookupError" in output


@pytest.mark.parametrize("call", [
    "chroot(b'/')", "unshare(0x10000000)", "ptrace(16, {pid}, 0, 0)", "mount(b'none', b'/proc', b'tmpfs', 0, 0)",
    "syscall(425, 1, 0)", "syscall(310, {pid}, 0, 0, 0, 0, 0)", "setns(0, 0)",
    # What happens later, to a stopped process as well: timers and queues with signals, watches on files.
    "syscall(222, 0, 0, 0)", "syscall(244, 0, 0)", "syscall(206, 1, 0)", "inotify_init()", "inotify_init1(0)",
    # clone: CLONE_PARENT, alone and with a thread's flags, and exit signals other than SIGCHLD.
    "syscall(56, 0x8011, 0, 0, 0, 0)", "syscall(56, 0x10D0F11 | 0x8000, 0, 0, 0, 0)", "syscall(56, 18, 0, 0, 0, 0)",
    "syscall(56, 9, 0, 0, 0, 0)", "syscall(56, 1 << 32 | 0x8011, 0, 0, 0, 0)",
    # prctl: the parent's death signal, and hiding from /proc.
    "prctl(1, 18, 0, 0, 0)", "prctl(1, 0, 0, 0, 0)", "prctl(4, 0, 0, 0, 0)", "prctl(36, 1, 0, 0, 0)",
    "fcntl(0, 10, 18)",
])
def test_unneeded_system_calls_fail(scratch: Path, call: str) -> None:
    code = f"import ctypes; print(ctypes.CDLL(None).{call.format(pid=os.getpid())})"
    assert run(code, scratch) == "-1"


def test_a_process_cannot_leave_its_process_group(scratch: Path) -> None:
    code = "import os; before = os.getpgrp(); os.setsid(); os.setpgid(0, 0); print(os.getpgrp() == before)"
    assert run(f"import os\nif os.fork() == 0:\n    {code}\nelse:\n    os.wait()", scratch) == "True"


def test_started_programs_have_no_capabilities(scratch: Path) -> None:
    grep = ["grep", "CapEff", "/proc/self/status"]
    assert "0000000000000000" in run(f"import subprocess; print(subprocess.check_output({grep}))", scratch)


def test_the_size_of_files_is_limited(scratch: Path) -> None:
    policy = Policy((), (), (), (), file_bytes=1 << 20)
    output = run("import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                 "open('big', 'wb').write(bytes(2 << 20))", scratch, policy=policy)
    assert "File too large" in output
    assert (scratch / "big").stat().st_size <= 1 << 20


def test_a_protection_that_cannot_be_switched_on_raises(scratch: Path) -> None:
    twice = Sandbox(PROTECTIONS, (str(ROOT / "harness"),)).policy(scratch, (), ())
    code = (f"import json; from inlinebench.sandbox.policy import Policy, enter; "
            f"enter(Policy.from_json(json.loads({json.dumps(twice.to_json())!r}))); print('inside')")
    assert "PermissionError" in run(code, scratch)


def test_the_environment_keeps_build_variables_and_drops_secrets() -> None:
    given = {"PATH": "/bin", "CUDA_HOME": "/cuda", "LC_ALL": "C", "CXX": "g++", "AWS_SECRET_ACCESS_KEY": "s",
             "GITHUB_TOKEN": "t", "HF_TOKEN": "h", "SSH_AUTH_SOCK": "/s", "HOME": "/home/me", "LD_PRELOAD": "x.so",
             "TORCH_CUDA_ARCH_LIST": "7.5 8.0 9.0"}
    assert set(clean_environment(given)) == {"PATH", "CUDA_HOME", "LC_ALL", "CXX"}


def test_the_home_and_temporary_folders_are_never_readable_as_a_whole(tmp_path: Path) -> None:
    assert not is_narrow(Path.home()) and not is_narrow(Path("/")) and not is_narrow(Path(tempfile.gettempdir()))
    assert is_narrow(tmp_path)
    home, folder = Path.home().resolve(), tmp_path.resolve()
    assert readable_for(home / "solution.py") == [home / "solution.py"]
    assert readable_for(folder / "solution.py") == [folder / "solution.py", folder]
    assert readable_for(folder / "solution.py", alone=True) == [folder / "solution.py"]


def test_the_common_folder_beside_a_solutions_folder_is_readable_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    for name in ("p", "q", "common"):
        (folder / name).mkdir()
    own = folder / "p" / "fast.py"
    assert readable_for(own) == [own, own.parent, folder / "common"]
    assert readable_for(own, alone=True) == [own]
    inside = folder / "common" / "fast.py"
    assert readable_for(inside) == [inside, inside.parent]
    (folder / "common").rmdir()
    (folder / "common").write_text("a file")
    assert readable_for(own) == [own, own.parent]
