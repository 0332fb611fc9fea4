"""The streams and events of `torch.cuda` where "cuda" means the CPU.

Work that is queued on a stream has already finished. The runtime library is told what a GPU would have to wait for, so
that it finds work that nothing orders.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from typing import Any

import torch


class _Streams:
    """The streams of the runtime library. Without one, all streams are the default stream."""

    def __init__(self) -> None:
        self._library: Any = None

    def use(self, library: ctypes.CDLL) -> None:
        """Sets the library that knows what is ordered."""
        for name in ("create_stream", "current_stream", "create_event"):
            getattr(library, f"cuda_on_cpu_{name}").restype = ctypes.c_uint64
        self._library = library

    def create(self) -> int:
        """Returns the number of a new stream."""
        return self._call("create_stream", 0)

    def current(self) -> int:
        """Returns the number of this thread's current stream."""
        return self._call("current_stream")

    def set_current(self, stream: int) -> None:
        """Sets this thread's current stream."""
        self._call("set_current_stream", stream)

    def synchronize(self, stream: int) -> None:
        """Lets the host wait for a stream."""
        self._call("synchronize_stream", stream)

    def synchronize_device(self) -> None:
        """Lets the host wait for all streams."""
        self._call("synchronize_device")

    def create_event(self) -> int:
        """Returns the number of a new event."""
        return self._call("create_event")

    def record(self, event: int, stream: int) -> None:
        """Records an event on a stream."""
        self._call("record_event", event, stream)

    def wait(self, stream: int, event: int) -> None:
        """Lets a stream wait for an event."""
        self._call("wait_event", stream, event)

    def synchronize_event(self, event: int) -> None:
        """Lets the host wait for an event."""
        self._call("synchronize_event", event)

    def _call(self, name: str, *numbers: int) -> int:
        if self._library is None:
            return 0
        return int(getattr(self._library, f"cuda_on_cpu_{name}")(*map(ctypes.c_uint64, numbers)) or 0)


STREAMS = _Streams()


class Stream:
    """A stream. Without `number` it is a new one, which does not wait for the default stream, like torch's."""

    def __init__(self, device: Any = None, priority: int = 0, *, number: int | None = None, **_: Any) -> None:
        self.device = torch.device("cpu")
        self.device_index = 0
        self.cuda_stream = self.stream_id = STREAMS.create() if number is None else number
        self.priority = priority

    def __enter__(self) -> Stream:
        self._before = STREAMS.current()
        STREAMS.set_current(self.cuda_stream)
        return self

    def __exit__(self, *_: object) -> None:
        STREAMS.set_current(self._before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def query(self) -> bool:
        """Returns True, because all work has finished."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Lets the host wait for the stream."""
        STREAMS.synchronize(self.cuda_stream)

    def wait_stream(self, stream: Any) -> None:
        """Lets this stream wait for the work of another one."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Any) -> None:
        """Lets this stream wait for an event."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Records the event and returns it."""
        event = event or Event()
        event.record(self)
        return event


class Event:
    """An event, which holds the time of its recording."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._at = 0.0
        self._number = STREAMS.create_event()

    def record(self, stream: Any = None) -> None:
        """Records the current time, and the work of the stream so far."""
        self._at = time.perf_counter()
        STREAMS.record(self._number, STREAMS.current() if stream is None else stream.cuda_stream)

    def elapsed_time(self, end: Event) -> float:
        """Returns the milliseconds from this event to `end`."""
        return (end._at - self._at) * 1e3

    def query(self) -> bool:
        """Returns True, because all work has finished."""
        self.synchronize()
        return True

    def wait(self, stream: Any = None) -> None:
        """Lets the stream wait for the event."""
        STREAMS.wait(STREAMS.current() if stream is None else stream.cuda_stream, self._number)

    def synchronize(self) -> None:
        """Lets the host wait for the event."""
        STREAMS.synchronize_event(self._number)


class StreamContext(contextlib.AbstractContextManager[None]):
    """Supports `with torch.cuda.StreamContext(stream):`. A class, because torch's compiler asks for instances of it."""

    def __init__(self, stream: Stream | None = None) -> None:
        self.idx = 0
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


def set_stream(stream: Stream | None) -> None:
    """Sets this thread's current stream."""
    if stream is not None:
        STREAMS.set_current(stream.cuda_stream)


class ExternalStream(Stream):
    """The stream with a handle, which is its number."""

    def __init__(self, stream_ptr: int, device: Any = None, **_: Any) -> None:
        super().__init__(number=stream_ptr)


def stream_context(stream: Stream | None = None) -> StreamContext:
    """Supports `with torch.cuda.stream(stream):`."""
    return StreamContext(stream)
