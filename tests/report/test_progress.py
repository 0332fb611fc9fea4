from __future__ import annotations

import io
import sys
import time
from queue import Queue

import pytest

from inlinebench.report.terminal.progress import Progress
from inlinebench.results.result import Verdict

from .samples import result


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Waited(io.StringIO):
    """A stream that a test can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._written: Queue[str] = Queue()

    def write(self, text: str) -> int:
        self._written.put(text)
        return super().write(text)

    def wait_for(self, text: str) -> None:
        while self._written.get(timeout=60) != text:
            pass


def run(progress: Progress) -> None:
    with progress:
        progress.start(2)
        progress.phase("building 2 solutions")
        progress.update("matmul_diag/naive")
        progress.finished(result(speedup=26.81))
        progress.line("a message")
        progress.finished(result("p/fast", Verdict.WRONG, shape="odd", reason="long story"))


def test_without_a_terminal_phases_and_results_are_plain_lines() -> None:
    stream = io.StringIO()
    run(Progress(stream=stream))
    assert stream.getvalue().splitlines() == [
        "building 2 solutions",
        "[1/2] matmul_diag/naive full: passed, 26.8x",
        "a message",
        "[2/2] p/fast odd: wrong",
    ]


def test_on_a_terminal_there_is_a_bar_that_is_removed_at_the_end() -> None:
    stream = Terminal()
    run(Progress(stream=stream))
    shown = stream.getvalue()
    for part in ("[0/2]", "building 2 solutions", "matmul_diag/naive", "[1/2]", "a message\n", "[2/2]"):
        assert part in shown
    assert "passed" not in shown
    assert shown.split("\r")[-1].strip() == ""


def test_the_bar_makes_room_for_other_text() -> None:
    stream = Terminal()
    with Progress(stream=stream) as progress:
        progress.start(2)
        before = len(stream.getvalue())
        with progress.hidden():
            assert stream.getvalue()[before:].strip() == ""
            stream.write("other text\n")
        after = stream.getvalue().partition("other text\n")[2]
        assert "[0/2]" in after


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_prints_nothing(stream: io.StringIO) -> None:
    run(Progress(quiet=True, stream=stream))
    assert stream.getvalue() == ""


def test_the_default_stream_is_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    run(Progress())
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("building 2 solutions\n")


def test_an_interrupted_run_removes_the_bar() -> None:
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), Progress(stream=stream) as progress:
        progress.start(3)
        progress.update("p/s")
        raise KeyboardInterrupt
    assert stream.getvalue().split("\r")[-1].strip() == ""


def test_a_result_on_the_cpu_has_no_speedup() -> None:
    stream = io.StringIO()
    with Progress(stream=stream) as progress:
        progress.start(1)
        progress.finished(result("p/s", speedup=3.0, device="cpu"))
    assert stream.getvalue() == "[1/1] p/s full: passed\n"


def test_a_second_start_resets_the_count() -> None:
    stream = io.StringIO()
    with Progress(stream=stream) as progress:
        for _ in range(2):
            progress.start(1)
            progress.finished(result("p/s"))
    assert stream.getvalue() == "[1/1] p/s full: passed\n" * 2


def test_untrusted_names_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    with Progress(stream=stream) as progress:
        progress.start(1)
        progress.finished(result("p/\x1b[2Js\r"))
    assert stream.getvalue() == "[1/1] p/\\x1b[2Js\\r full: passed\n"


def test_tqdm_is_imported_only_for_a_bar() -> None:
    import subprocess

    code = "import sys, inlinebench.report.terminal.progress as p; p.Progress().line('x'); print('tqdm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "x\n")


def test_without_a_terminal_a_long_silence_ends_with_the_current_activity() -> None:
    stream = Waited()
    with Progress(stream=stream, silence=0.05) as progress:
        stream.wait_for("starting PyTorch (for 0 s)\n")
        progress.start(1)
        progress.update("p/s full checking")
        stream.wait_for("p/s full checking (for 0 s)\n")
        stream.wait_for("p/s full checking (for 0 s)\n")
    before = stream.getvalue()
    time.sleep(0.2)
    assert stream.getvalue() == before


def test_an_evaluation_is_not_named_after_its_result() -> None:
    stream = Waited()
    with Progress(stream=stream, silence=0.05) as progress:
        progress.start(2)
        progress.update("p/s full warm-up call 1")
        progress.finished(result("p/s"))
        stream.wait_for("waiting for the next build (for 0 s)\n")
        progress.update("p/other full call 1")
        progress.finished(result("p/s"))
        stream.wait_for("p/other full call 1 (for 0 s)\n")


def test_on_a_terminal_there_is_a_line_at_once_which_the_bar_replaces() -> None:
    stream = Terminal()
    with Progress(stream=stream) as progress:
        assert stream.getvalue() == "starting PyTorch"
        progress.start(1)
        assert stream.getvalue().startswith("starting PyTorch\r\x1b[K")
    quiet = Terminal()
    with Progress(quiet=True, stream=quiet):
        assert quiet.getvalue() == ""
