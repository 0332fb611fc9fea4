"""What the cheats of this folder leave behind in a build, and how they look for it.

The process that is left listens under an abstract name, and ends by itself.
"""

import os
import socket
import sys
from pathlib import Path

LIFETIME_S = 40

DAEMON = f"""
import os, socket, sys, time
name, *command = sys.argv[1:]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.closerange(3, 1024)
        here = socket.socket(socket.AF_UNIX)
        try:
            here.bind("\\0" + name)
            here.listen()
        except OSError:
            pass
        time.sleep({LIFETIME_S})
    os._exit(0)
os.wait()
os.execvp(command[0], command)
"""
"""Leaves a process of the name behind, and goes on as a command."""

LIBRARY_SOURCE = r"""
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
int plugin_is_GPL_compatible;
int plugin_init(void*, void*) { return 0; }  // the compiler's
int onload(void*) { return 0; }              // the linker's
}

void listen_for_a_while() {
  const int nothing = open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; ++descriptor) dup2(nothing, descriptor);
  for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path + 1, "@NAME@");
  const int here = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(here, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t) + 1 + std::strlen("@NAME@"));
  listen(here, 8);
  prctl(PR_SET_NAME, "left-by-a-build");
  sleep(@LIFETIME@);
}

__attribute__((constructor)) void leave() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  if (std::strncmp(name, "cc1plus", 7) != 0 && std::strncmp(name, "ld", 2) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) listen_for_a_while();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}
"""
"""A library that leaves a process behind where a compiler or a linker loads it, and does nothing anywhere else."""


def leaving(name: str) -> list[str]:
    """The beginning of a command line that leaves a process behind. Has no commas, spaces and quotation marks."""
    code = DAEMON.encode()
    return [os.path.realpath(sys.executable), "-c", f"exec(({int.from_bytes(code):#x}).to_bytes({len(code)}))", name]


def library_arguments(name: str) -> dict[str, object]:
    """The arguments of `load_inline` for the library."""
    return {
        "cpp_sources": LIBRARY_SOURCE.replace("@NAME@", name).replace("@LIFETIME@", str(LIFETIME_S)),
        "extra_ldflags": ["-Wl,--as-needed"],  # nothing of torch: a compiler can't load that
        "is_python_module": False,
        "no_implicit_headers": True,
    }


def is_there(name: str) -> bool:
    """Whether a process listens under the name, or has it in its command line."""
    with socket.socket(socket.AF_UNIX) as here:
        if here.connect_ex("\0" + name) == 0:
            return True
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in path.read_text():
                return True
        except OSError:
            continue  # it has ended, or is somebody else's
    return False
