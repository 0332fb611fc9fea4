"""JSON frames over a pair of file descriptors: four bytes of length, big-endian, then UTF-8 JSON (one object).

The judge reads what a hostile process wrote, so a frame has a size limit, a deadline, and nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

HEADER_BYTES = 4
MAX_FRAME_BYTES = 16 << 20
"""Large enough for the sources of any build request, small enough to hold."""


class ChannelClosed(Exception):
    """The other side closed the channel, or ended."""


class BadFrame(Exception):
    """What came is no frame: too large, no JSON, no object."""


class FrameTooLarge(ValueError):
    """What is to be sent doesn't fit into a frame: our own doing, not the other end's."""


class DeadlinePassed(Exception):
    """No whole frame came in time."""


class Channel:
    """Sends and receives frames; owns both descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._buffer = bytearray()

    def send(self, frame: dict[str, Any], timeout: float | None = None) -> None:
        """Writes one frame.

        Raises ChannelClosed if nobody reads any more, DeadlinePassed if the other side didn't read it in time (s).
        """
        data = encode(frame)
        deadline = None if timeout is None else time.monotonic() + timeout
        while data:
            _wait(self._write_fd, deadline, write=True)
            try:
                data = data[os.write(self._write_fd, data[: select.PIPE_BUF]) :]
            except OSError as error:
                raise ChannelClosed(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next frame.

        Raises ChannelClosed, BadFrame, or DeadlinePassed when no whole frame came within the timeout (s).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (frame := decode(self._buffer)) is None:
            _wait(self._read_fd, deadline, write=False)
            try:
                data = os.read(self._read_fd, 1 << 16)
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not data:
                raise ChannelClosed("end of file")
            self._buffer += data
        return frame

    def close(self) -> None:
        """Closes both descriptors; closing twice does nothing."""
        for fd in {self._read_fd, self._write_fd} - {-1}:
            os.close(fd)
        self._read_fd = self._write_fd = -1


def encode(frame: dict[str, Any]) -> bytes:
    """The bytes of a frame. Raises ValueError for NaN, which JSON can't hold, and FrameTooLarge."""
    body = json.dumps(frame, allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a frame of {len(body)} bytes; the limit is {MAX_FRAME_BYTES}")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def decode(buffer: bytearray) -> dict[str, Any] | None:
    """Takes one frame off the front of the buffer; None while it isn't whole. Raises BadFrame."""
    if len(buffer) < HEADER_BYTES:
        return None
    length = int.from_bytes(buffer[:HEADER_BYTES], "big")
    if length > MAX_FRAME_BYTES:
        raise BadFrame(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
    if len(buffer) < HEADER_BYTES + length:
        return None
    body = bytes(buffer[HEADER_BYTES : HEADER_BYTES + length])
    del buffer[: HEADER_BYTES + length]
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"not JSON: {error}") from error
    if not isinstance(frame, dict):
        raise BadFrame(f"a frame is an object, not {type(frame).__name__}")
    return frame


def _wait(fd: int, deadline: float | None, *, write: bool) -> None:
    if fd < 0:
        raise ChannelClosed("closed")
    poller = select.poll()
    poller.register(fd, select.POLLOUT if write else select.POLLIN)
    remaining = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poller.poll(remaining):
        raise DeadlinePassed()
