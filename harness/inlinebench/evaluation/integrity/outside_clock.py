"""Times single calls of a candidate by the judge's own clock: the GPU's time, which kernels of the judge take.

The times in a candidate's replies come from its own process, where a solution could falsify them. So the candidate
holds some calls: it queues a call behind a blocking kernel, or waits on the host if the solution waits for the device.
Only then does the judge

1. take the GPU's time,
2. write the inputs, sweep L2, and release the call, by kernels that no other process's work comes between,
3. wait for the flag that it is done,
4. copy all that the reference writes too: outputs, states, and inputs that are changed in place,
5. take the GPU's time again.

All of it happens on the GPU between two stamps, and what was copied is compared. So the work was done between the
stamps, whatever the candidate says. No word of it decides whether a call counts: before its release it does not know
the inputs. Outputs are copied from where the candidate allocated them, so that no copy of its own has to be credited.
Those of a call that waits on the host are copied to the arena, which counts, as all of its own steps do.

A call of a stand-in of known duration takes the same steps in another process, right before each held call. The
difference between the two is by how much the solution takes longer than the stand-in (`held_times`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from inlinebench.devices.cuda.clock import HELD_MS, GpuClock
from inlinebench.devices.cuda.device_memory import Importer
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.evaluation.failures import raise_failure
from inlinebench.problem.workload import Received, Workload
from inlinebench.process.candidate_process import CandidateCheated, CandidateProcess
from inlinebench.process.replies import read_holding
from inlinebench.wire.arena import TensorSpec
from inlinebench.wire.locations import BadLocation, Places

LATEST = 0.5
"""The share of `HELD_MS` after which the judge does not release a call, because it could begin by itself meanwhile."""


Reply = TypeVar("Reply")


@dataclass(frozen=True)
class HeldRequest:
    """What to ask a candidate for."""

    operation: str
    number: int
    """The set of buffers."""
    inputs: Sequence[torch.Tensor]
    """The judge's private copy of the inputs."""
    states: Sequence[str]
    """The names of the states that the candidate gives, in its order."""
    on_host: bool
    """Whether the call waits for its release on the host, since it cannot be queued."""
    facts: Mapping[str, Any]
    """The other facts of the request."""


class OutsideClock:
    """Times held calls of one process. `received` has what the last call wrote, in the judge's memory."""

    def __init__(self, workload: Workload, process: CandidateProcess, clock: GpuClock) -> None:
        self._workload, self._process, self._clock = workload, process, clock
        arena = workload.arena.bytes
        self._importer = Importer((arena.data_ptr(), arena.numel()))
        assert process.page is not None  # every process on a GPU has one
        self._page, self._flags = process.page, clock.map(process.page)
        self.received = Received()

    def time(self, request: HeldRequest, parse: Callable[[dict[str, Any]], Reply]) -> tuple[float | None, Reply]:
        """Makes one held call. Returns the time between the stamps in ms, and the reply.

        The time is None if the judge did not release the call in time. Then it has begun by itself, and it is not known
        which inputs it has read. Raises Failed if the candidate reports a failure, and the exceptions of
        `CandidateProcess.ask`.
        """
        self.received = self._workload.results()
        self._workload.synchronize()
        call = _HeldCall(self, self._page, request)
        reply = self._process.ask(
            request.operation, on_held=call.release, on_host=request.on_host, **request.facts)
        raise_failure(reply, self._workload.device)
        finished = parse(reply)
        self._importer.tidy()
        return call.took_ms, finished

    def release(self) -> None:
        """Frees the memory of the last call."""
        self.received = Received()

    def close(self) -> None:
        """Closes the memory of the process. Nothing may be reading it."""
        self._importer.close()
        self._clock.unmap(self._page)

    def sources(self, request: HeldRequest, places: Places | None) -> list[tuple[torch.Tensor, int]]:
        """Returns tensors of `received` with the addresses that they are copied from. `places` are None if all are in
        the arena. Raises CandidateCheated.
        """
        workload, received = self._workload, self.received
        specs = [*workload.sets[request.number].outputs, *(workload.state_specs[name] for name in request.states)]
        targets = [*received.outputs, *(received.states[name] for name in request.states)]
        if places is None:
            places = [None] * len(specs)
        if len(places) != len(specs):
            raise CandidateCheated("malformed message from the solution's process: wrong number of tensor locations")
        try:
            found = [self._shared(spec) if place is None else self._importer.address(place, spec.bytes)
                     for spec, place in zip(specs, places, strict=True)]
            if not workload.probed.may_alias:
                for spec, address in zip(workload.sets[request.number].outputs, found, strict=False):
                    self._check_outside_inputs(request.number, address, spec.bytes)
        except BadLocation as error:
            raise CandidateCheated(f"malformed message from the solution's process: {error}") from None
        changed = [(tensor, self._shared(workload.sets[request.number].inputs[index]))
                   for index, tensor in received.inputs.items()]
        return [*zip(targets, found, strict=True), *changed]

    def begin(self, request: HeldRequest) -> None:
        """Queues what makes the call begin: the stamp, the copy of the inputs, a sweep of L2, and the release."""
        self._clock.gather()
        self._clock.stamp_begin()  # before the inputs, because a solution can wait for the first one by itself
        for spec, tensor in zip(self._workload.sets[request.number].inputs, request.inputs, strict=True):
            self._clock.move(self._shared(spec), tensor.data_ptr(), spec.bytes)
        self._clock.sweep()
        self._clock.release_other(self._flags)

    def end(self, sources: Sequence[tuple[torch.Tensor, int]]) -> float:
        """Copies what the call wrote, takes the GPU's time, and returns the time since the beginning in ms."""
        for tensor, address in sources:
            self._clock.move(tensor.data_ptr(), address, tensor.numel() * tensor.element_size())
        self._clock.stamp_end()  # last, because work goes on while another process preempts the copies
        return self._clock.between_stamps()

    def _check_outside_inputs(self, number: int, address: int, size: int) -> None:
        """Raises BadLocation if an output shares memory with an input, where values may be right without any work."""
        for spec in self._workload.sets[number].inputs:
            begin = self._shared(spec)
            if address < begin + spec.bytes and begin < address + size:
                raise BadLocation("a location is inside an input")

    def _shared(self, spec: TensorSpec) -> int:
        return self._workload.arena.bytes.data_ptr() + spec.offset


class _HeldCall:
    """One held call. `took_ms` is the time between the stamps."""

    def __init__(self, clock: OutsideClock, page: FlagPage, request: HeldRequest) -> None:
        self._clock, self._page, self._request = clock, page, request
        self._asked = time.monotonic()
        self.took_ms: float | None = None

    def release(self, message: Mapping[str, Any]) -> None:
        """Releases the call, unless it may have begun by itself, waits for its end and copies what it wrote.

        The flag only says when to look. It may be forged: outputs that are not complete when they are copied are wrong.
        """
        places = read_holding(message)
        on_host = self._request.on_host
        sources = self._clock.sources(self._request, None if on_host else places or ())
        # A call that waits on the host has just begun to wait. A flag in the candidate's memory says that its blocking
        # kernel ran out, and is not asked: a solution could decline calls by it.
        if not on_host and time.monotonic() - self._asked > LATEST * HELD_MS / 1e3:
            return
        self._clock.begin(self._request)
        self._page.wait_until_done()
        self.took_ms = self._clock.end(sources)
