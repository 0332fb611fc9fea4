"""JSON frames over a socket: four bytes of length, big-endian, then one JSON object in UTF-8.

The judge reads what a hostile process wrote, so frames have a size limit and a deadline, and their content is not
executed.
"""

from __future__ import annotations

import json
import select
import socket
import time
from array import array
from typing import Any

HEADER_BYTES = 4
READ_BYTES = 1 << 16
MAX_FRAME_BYTES = 16 << 20
"""Large enough for the sources of any build request, small enough for memory."""


class ChannelClosed(Exception):
    """The other side closed the channel, or ended."""


class BadFrame(Exception):
    """The received data is not a frame: it is too large, not JSON, or not an object."""


class FrameTooLarge(ValueError):
    """A frame to send is too large. The error is this process's, not the other side's."""


class DeadlinePassed(Exception):
    """No complete frame arrived in time."""


class Channel:
    """Sends and receives frames.

    Args:
        connection: a stream socket, which the channel owns.
        takes_descriptors: whether to accept file descriptors from the other side. The kernel closes them otherwise.
    """

    def __init__(self, connection: socket.socket, *, takes_descriptors: bool = False) -> None:
        self._socket, self._takes_descriptors = connection, takes_descriptors
        self._buffer = bytearray()
        self.descriptors: list[int] = []
        """Descriptors that came with the received frames."""

    def send(self, frame: dict[str, Any], timeout: float | None = None, descriptor: int | None = None) -> None:
        """Writes one frame, and gives a file descriptor along with it.

        Raises ChannelClosed if the other side no longer reads, and DeadlinePassed if it does not read the frame within
        `timeout` seconds.
        """
        data = memoryview(encode(frame))
        deadline = None if timeout is None else time.monotonic() + timeout
        while data:
            self._wait(deadline, write=True)
            try:
                data = data[self._write(data, descriptor) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            descriptor = None

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Returns the next frame.

        Raises ChannelClosed, BadFrame, or DeadlinePassed if no complete frame arrives within `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (frame := decode(self._buffer)) is None:
            self._wait(deadline, write=False)
            try:
                data = self._read()
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not data:
                raise ChannelClosed("end of file")
            self._buffer += data
        return frame

    def close(self) -> None:
        """Closes the socket. May be called more than once."""
        self._socket.close()

    def _write(self, data: memoryview, descriptor: int | None) -> int:
        # Not `socket.send_fds`, which ignores its flags.
        given = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [descriptor]))]
        return self._socket.sendmsg([data], given, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _read(self) -> bytes:
        if not self._takes_descriptors:
            return self._socket.recv(READ_BYTES)
        data, descriptors, _, _ = socket.recv_fds(self._socket, READ_BYTES, 1)
        self.descriptors += descriptors
        return data

    def _wait(self, deadline: float | None, *, write: bool) -> None:
        if self._socket.fileno() < 0:
            raise ChannelClosed("closed")
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT if write else select.POLLIN)
        remaining = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poller.poll(remaining):
            raise DeadlinePassed()


def encode(frame: dict[str, Any]) -> bytes:
    """Returns the bytes of a frame. Raises ValueError for NaN, which JSON cannot represent, and FrameTooLarge."""
    body = json.dumps(frame, allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"the message has {len(body)} bytes; the limit is {MAX_FRAME_BYTES}")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def decode(buffer: bytearray) -> dict[str, Any] | None:
    """Removes one frame from the front of the buffer and returns it, or None if it is incomplete. Raises BadFrame."""
    if len(buffer) < HEADER_BYTES:
        return None
    length = int.from_bytes(buffer[:HEADER_BYTES], "big")
    if length > MAX_FRAME_BYTES:
        raise BadFrame(f"the message has {length} bytes; the limit is {MAX_FRAME_BYTES}")
    if len(buffer) < HEADER_BYTES + length:
        return None
    body = bytes(buffer[HEADER_BYTES : HEADER_BYTES + length])
    del buffer[: HEADER_BYTES + length]
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"not JSON: {error}") from error
    if not isinstance(frame, dict):
        raise BadFrame(f"the message is not a JSON object, but of type {type(frame).__name__}")
    return frame

