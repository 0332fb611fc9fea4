from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.wire.channel import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    READ_BYTES,
    BadFrame,
    Channel,
    ChannelClosed,
    DeadlinePassed,
    FrameTooLarge,
    decode,
    encode,
)

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    first, second = socket.socketpair()
    one, other = Channel(first), Channel(second, takes_descriptors=True)
    yield one, other
    one.close()
    other.close()


def header(length: int) -> bytes:
    return length.to_bytes(HEADER_BYTES, "big")


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
_frames = st.dictionaries(st.text(), _json, max_size=4)


@given(_frames)
def test_an_encoded_frame_is_decoded_unchanged(frame: dict[str, Any]) -> None:
    assert decode(bytearray(encode(frame))) == json.loads(json.dumps(frame))


@given(st.lists(_frames, max_size=4), st.data())
def test_frames_can_be_split_anywhere(frames: list[dict[str, Any]], data: st.DataObject) -> None:
    stream = b"".join(map(encode, frames))
    buffer, seen = bytearray(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        buffer += stream[:size]
        stream = stream[size:]
        while (frame := decode(buffer)) is not None:
            seen.append(frame)
    assert seen == frames and not buffer


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_bad_frame(noise: bytes) -> None:
    for data in (noise, header(len(noise)) + noise):
        with suppress(BadFrame):
            assert decode(bytearray(data)) is None or len(data) >= HEADER_BYTES


@pytest.mark.parametrize("body", [
    b"[1]", b"null", b"1", b'"text"', b"", b"{", b"\xff\xfe{", b"[" * 100_000, b'{"a": ' + b"1" * 5000 + b"}",
    b'{"a": ' * 100_000,
])
def test_a_body_that_is_not_a_json_object_raises_bad_frame(body: bytes) -> None:
    with pytest.raises(BadFrame):
        decode(bytearray(header(len(body)) + body))


def test_a_length_above_the_limit_raises_before_the_body_arrives() -> None:
    assert decode(bytearray(header(MAX_FRAME_BYTES))) is None
    with pytest.raises(BadFrame):
        decode(bytearray(header(MAX_FRAME_BYTES + 1)))


def test_sending_a_frame_above_the_limit_raises_frame_too_large() -> None:
    with pytest.raises(FrameTooLarge):
        encode({"text": "x" * MAX_FRAME_BYTES})


def test_frames_are_received_in_order_in_both_directions(pair: Pair) -> None:
    one, other = pair
    one.send({"number": 1})
    one.send({"number": 2})
    other.send({"answer": 1})
    assert [other.receive(1)["number"] for _ in range(2)] == [1, 2]
    assert one.receive(1) == {"answer": 1}


def test_a_frame_larger_than_the_pipe_is_transferred(pair: Pair) -> None:
    one, other = pair
    frame = {"text": "x" * (1 << 20)}
    sender = threading.Thread(target=one.send, args=(frame, 10))
    sender.start()
    assert other.receive(10) == frame
    sender.join()


def test_receiving_nothing_or_half_a_frame_ends_at_the_deadline(pair: Pair) -> None:
    one, other = pair
    begin = time.monotonic()
    with pytest.raises(DeadlinePassed):
        one.receive(0.1)
    other._socket.send(header(100) + b"{")
    with pytest.raises(DeadlinePassed):
        one.receive(0.1)
    assert time.monotonic() - begin < 2


def test_slowly_arriving_bytes_do_not_extend_the_deadline(pair: Pair) -> None:
    one, other = pair
    ended = threading.Event()

    def trickle() -> None:
        other._socket.send(header(10_000))
        while not ended.wait(0.02):
            other._socket.send(b" ")

    thread = threading.Thread(target=trickle)
    thread.start()
    begin = time.monotonic()
    with pytest.raises(DeadlinePassed):
        one.receive(0.2)
    ended.set()
    thread.join()
    assert time.monotonic() - begin < 2


def test_a_descriptor_comes_with_its_frame(pair: Pair) -> None:
    one, other = pair
    memory = os.memfd_create("memory")
    os.write(memory, b"data")
    one.send({"number": 1})
    one.send({"text": "x" * READ_BYTES}, 1, memory)
    os.close(memory)
    assert other.receive(1) == {"number": 1}
    other.receive(1)
    [descriptor] = other.descriptors
    assert os.pread(descriptor, 4, 0) == b"data"
    os.close(descriptor)


def test_the_judge_takes_no_descriptors(pair: Pair) -> None:
    one, other = pair
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        other.send({}, 1, 0)
        assert one.receive(1) == {} and not one.descriptors
    assert len(os.listdir("/proc/self/fd")) == before


def test_sending_ends_at_the_deadline_if_nobody_reads(pair: Pair) -> None:
    with pytest.raises(DeadlinePassed):
        pair[0].send({"text": "x" * (1 << 20)}, 0.1)


def test_a_closed_channel_raises(pair: Pair) -> None:
    one, other = pair
    other.close()
    other.close()
    with pytest.raises(ChannelClosed):
        one.receive(1)
    with pytest.raises(ChannelClosed):
        one.send({})
    with pytest.raises(ChannelClosed):
        other.receive(1)
