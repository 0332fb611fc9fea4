"""The runtime library as it is loaded in this process: how launches run, and what they have found."""

from __future__ import annotations

import ctypes
from pathlib import Path

_LONGEST_TEXT = 1 << 16


class Runtime:
    """The runtime library of this process, which all translated modules share.

    Args:
        library: the library that `runtime_library` has built. It is loaded unless a module has loaded it already.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def set_block_order(self, seed: int) -> None:
        """Sets the schedule of later launches: 0 is ascending, other seeds shuffle the blocks and reverse the threads.
        """
        self._library.cuda_on_cpu_set_block_order(ctypes.c_uint(seed))

    def find_races(self, wanted: bool) -> None:
        """Sets whether later launches look for data races. Kernels run many times slower meanwhile.

        Races are found in sources that were compiled with `RACE_FLAGS`.
        """
        self._library.cuda_on_cpu_find_races(ctypes.c_int(wanted))

    def throw_errors(self, wanted: bool) -> None:
        """Sets whether a launch that finds a bug throws a C++ exception, as at first, or keeps it for `take_error`.

        Callers that cannot catch C++ exceptions, such as ctypes, have to keep them.
        """
        self._library.cuda_on_cpu_throw_errors(ctypes.c_int(wanted))

    def take_error(self) -> str:
        """Returns the first bug that was kept since the last call: a data race, a barrier that not all threads reach,
        an access out of bounds. "" if there is none."""
        return self._take("error")

    def find_unordered(self, address: int, size: int) -> str:
        """Returns which kernel writes to a result of the call on a stream for which the default stream does not wait.

        "" if there is none. Results are read on the default stream, so the kernel might not have run yet on a GPU.
        """
        text = ctypes.create_string_buffer(_LONGEST_TEXT)
        self._library.cuda_on_cpu_find_unordered(
            ctypes.c_void_p(address), ctypes.c_size_t(size), text, ctypes.c_size_t(len(text)))
        return text.value.decode(errors="replace")

    def take_race_notes(self) -> list[str]:
        """Returns what was found since the last call that does not make a result wrong: races that change nothing, and
        reads of what nobody wrote."""
        return self._take("race_notes").splitlines()

    def take_refused_launch(self) -> str:
        """Returns the kernel, configuration and limit of the first launch since the last call that a GPU would refuse,
        or ""."""
        return self._take("refused_launch")

    def launches(self) -> int:
        """Returns how many kernels this process has launched."""
        return int(self._library.cuda_on_cpu_launches())

    def _take(self, what: str) -> str:
        text = ctypes.create_string_buffer(_LONGEST_TEXT)
        self._library[f"cuda_on_cpu_take_{what}"](text, ctypes.c_size_t(len(text)))
        return text.value.decode(errors="replace")
