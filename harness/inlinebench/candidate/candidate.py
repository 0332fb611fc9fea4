"""Serves the judge's requests, one at a time: load a solution, map the buffers, make calls.

The modules for timing and communication are imported here, before the solution can interfere.
"""

from __future__ import annotations

import base64
import gc
import os
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from inlinebench.candidate import load_inline, solution, weights
from inlinebench.candidate.absent_triton import absent_triton
from inlinebench.candidate.calls import Caller, CallForm, OutputMismatch
from inlinebench.candidate.files import Files
from inlinebench.candidate.includes import for_build
from inlinebench.candidate.provenance import Provenance
from inlinebench.candidate.stand_in import StandIn
from inlinebench.devices.base import LAUNCH_REFUSED, Instruments
from inlinebench.devices.cpu import emulation
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.devices.registry import of
from inlinebench.sandbox import refusal
from inlinebench.sandbox.policy import Policy
from inlinebench.timing.call import Sample
from inlinebench.timing.overhead import shown_ms
from inlinebench.timing.trace import Activity, Traced
from inlinebench.wire.arena import BufferSet, TensorSpec
from inlinebench.wire.arithmetic import cast, exact_arithmetic
from inlinebench.wire.backward import NO_GRADIENT, ForwardBackward, NotDifferentiable
from inlinebench.wire.channel import Channel, ChannelClosed
from inlinebench.wire.lacking_triton import lacks_triton
from inlinebench.wire.locations import Places

Value = TypeVar("Value")

LONGEST_MESSAGE = 4000
"""Characters of an error message that are sent to the judge."""


@dataclass
class LoadedModel:
    """A model of the solution's."""

    model: torch.nn.Module
    """The model, on the device."""
    match: weights.Match
    """How its parameters and buffers match the reference's."""


@dataclass
class AtWorkload:
    """What belongs to one workload. None until the judge has asked for it."""

    arena: torch.Tensor | None = None
    """The judge's shared memory (1-d uint8)."""
    loaded: LoadedModel | None = None
    """The model, which may be that of other workloads, too."""
    both: ForwardBackward | None = None
    """The model with its backward, if calls have one."""
    caller: Caller | None = None
    """Runs the calls."""
    stand_in: StandIn | None = None
    """What the process that loads no solution runs instead."""
    launched_before: int = 0
    """How many kernels the CPU runtime had run before the calls."""


class Candidate:
    """Serves the judge and keeps the state between requests.

    Args:
        channel: to the judge.
        policy: the policy of the sandbox that this process is in.
        files: the private copies of the solution's files.
        page_fd: the descriptor of the flags of the blocking kernel. None on the CPU.
    """

    def __init__(self, channel: Channel, policy: Policy, files: Files, page_fd: int | None) -> None:
        self._channel, self._page_fd = channel, page_fd
        self._policy, self._files, self._provenance = policy, files, Provenance(files)
        self._path = Path()
        self._imported: tuple[str | None, type[torch.nn.Module]] | None = None
        """The text that replaces the solution's, and the class that was imported."""
        self._models: dict[tuple[str, str | None], LoadedModel] = {}
        """The solution's models, by their keys and texts."""
        self._workloads: dict[str, AtWorkload] = {}
        self._at = AtWorkload()
        """What belongs to the workload of the current request."""
        self._device = torch.device("cpu")
        self._instruments: Instruments | None = None
        self._runtime: emulation.Runtime | None = None
        self._late: Callable[[], None] | None = None
        """Asks for the gradients of the outputs of the current call, if they come late."""
        self._marks_passes = False
        """Whether a kernel of the clock's runs between forward and backward, to tell them apart in a profile."""

    def serve(self) -> None:
        """Serves requests until the judge closes the channel."""
        operations = {"prebuild": self._prebuild, "start": self._start, "clock": self._measure_clock,
                      "open": self._open_arena, "load": self._load, "map": self._map, "call": self._call,
                      "hold": self._hold, "loop": self._loop, "rehearse": self._rehearse, "unmap": self._unmap,
                      "report": self._report, "provenance": self._report_provenance}
        while True:
            try:
                request = self._channel.receive()
            except ChannelClosed:
                return
            self._at = self._workloads.setdefault(request["workload"], AtWorkload())
            reply = self._reply(operations[request["op"]], request)
            self._channel.send({**reply, "nonce": request["nonce"]})

    def _reply(self, operation: Any, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(operation(request))
        except solution.UnusableSolution as error:
            return self._failed(error, error)
        except (OutputMismatch, NotDifferentiable) as error:
            return {"op": "mismatch", "message": str(error)[:LONGEST_MESSAGE]}
        except Exception as error:  # noqa: BLE001
            # An exception of the solution becomes the reply; its traceback goes to the log.
            return self._failed(solution.failure(error, "exception", self._path), error)

    def _failed(self, unusable: solution.UnusableSolution, error: Exception) -> dict[str, Any]:
        """Returns the reply for a failure, with the author's paths. It begins with what load_inline did not accept, and
        ends with what the sandbox refused."""
        refused = refusal.describe(error, self._policy)
        earlier = [each for each in load_inline.refused[:1] if each not in str(unusable)]
        message = self._files.by_author("; ".join(filter(None, (*earlier, str(unusable), refused))))
        return {"op": "failed", "kind": unusable.kind, "message": message[:LONGEST_MESSAGE]}

    def _prebuild(self, request: dict[str, Any]) -> dict[str, Any]:
        """Imports and constructs the solution, only so that it requests its builds."""
        self._construct(request)
        return {"op": "prebuilt"}

    def _construct(self, request: dict[str, Any]) -> torch.nn.Module:
        kind = self._import(request)
        arguments, named = _unpack(request["init"])
        return solution.construct(kind, self._path, arguments, named, request["seed"])

    def _import(self, request: dict[str, Any]) -> type[torch.nn.Module]:
        """Imports the solution, once unless its text is another one at another workload."""
        text = request["text"]
        if self._imported is not None and self._imported[0] == text:
            return self._imported[1]
        self._path = self._files.copy(Path(request["solution"]), map(Path, request["readable"]))
        if text is not None:
            self._path = self._files.write(self._path, text)
        if self._imported is None:
            if "runtime" in request["runtime_libraries"]:
                self._runtime = emulation.Runtime(Path(request["runtime_libraries"]["runtime"]))
                emulation.install(Path(request["runtime_libraries"]["allocator"]))
            load_inline.install(self._build)
        with absent_triton() if lacks_triton(self._path) else nullcontext():
            kind = solution.import_class(self._path, request["class_name"])
        self._imported = text, kind
        return kind

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Starts the device. The judge does not name a solution yet."""
        self._device = torch.device(request["device"])
        exact_arithmetic(tf32=request["tf32"])
        self._instruments = of(self._device).instruments(request["runtime_libraries"], self._page_fd)
        return {"op": "started"}

    @property
    def _of_device(self) -> Instruments:
        assert self._instruments is not None  # the judge starts the device first
        return self._instruments

    def _measure_clock(self, _: dict[str, Any]) -> dict[str, Any]:
        """Measures the clock's time for an empty kernel, before any code of a solution runs in this process."""
        return {"op": "clocked", "shown_ms": shown_ms(self._of_device.clock)}

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["model"], request["text"]
        if key not in self._models:
            self._models[key] = self._loaded(request)
        self._at.loaded = loaded = self._models[key]
        how = loaded.match.how if request["transfer"] else weights.KEPT
        return {"op": "ready", "weights": how, "buffers": loaded.match.buffers}

    def _loaded(self, request: dict[str, Any]) -> LoadedModel:
        model = self._construct(request)
        reference = torch.load(request["weights"], mmap=True)
        if request["transfer"]:
            weights.materialize(model, reference["parameters"], reference["buffers"])
        if request["precision"] is not None:
            model = cast(model, request["precision"])
        found = weights.match(model, reference["parameters"], reference["buffers"])
        if request["transfer"]:
            weights.transfer(model, found, reference["parameters"], reference["buffers"])
        model = model.to(self._device)
        # Excludes everything loaded so far from garbage collection, so that collecting after each call is cheap.
        gc.collect()
        gc.freeze()
        gc.disable()
        return LoadedModel(model, found)

    def _map(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._at.loaded is not None
        loaded, skeletons, gradients = self._at.loaded, _unpack(request["skeletons"]), _unpack(request["gradients"])
        model = loaded.model
        if gradients is not None:
            between = partial(self._between_passes, len(gradients.incoming))
            model = self._at.both = ForwardBackward(
                model, gradients, {theirs: own for own, theirs in loaded.match.parameters.items()}, between)
        form = CallForm(
            input_skeleton=skeletons[0],
            input_is_tensor=skeletons[1],
            output_skeleton=skeletons[2],
            output_is_tensor=skeletons[3],
            sets=tuple(map(BufferSet.from_json, request["sets"])),
            states={name: TensorSpec.from_json(spec) for name, spec in request["states"].items()},
            may_alias=request["may_alias"],
        )
        self._at.launched_before = self._runtime.launches() if self._runtime else 0
        arena = self._opened
        copied_to = None if of(arena.device).candidates_share_inputs else self._device
        self._at.caller = Caller(model, self._of_device.clock, arena, form, copied_to,
                                 on_result=self._require_ordered)
        return {"op": "mapped"}

    def _open_arena(self, request: dict[str, Any]) -> dict[str, Any]:
        """Opens the arena of a workload, whose descriptor comes with the request, unless it is open."""
        descriptor = self._channel.descriptors.pop()
        try:
            if self._at.arena is None:
                device = torch.device("cpu") if request["arena"]["in_host_memory"] else self._device
                self._at.arena = of(device).open_arena(request["arena"], descriptor)
        finally:
            os.close(descriptor)
        return {"op": "opened"}

    @property
    def _opened(self) -> torch.Tensor:
        assert self._at.arena is not None
        return self._at.arena

    def _rehearse(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes one call of a stand-in and holds another. This process never loads a solution."""
        clock, arena = self._of_device.clock, self._opened
        locator = of(arena.device).locator(arena)
        assert isinstance(clock, GpuClock) and locator is not None
        buffers, states = BufferSet.from_json(request["buffers"]), map(TensorSpec.from_json, request["states"])
        if self._at.stand_in is None:
            self._at.stand_in = StandIn(clock, arena, locator, buffers, tuple(states))
        self._at.stand_in.buffers = buffers
        alone = self._at.stand_in.alone()
        self._at.stand_in.hold(request["on_host"], partial(self._report_held, request["nonce"]))
        return {"op": "rehearsed", "alone_ms": alone.device_ms, "alone_blocked": alone.blocked}

    def _unmap(self, _: dict[str, Any]) -> dict[str, Any]:
        """Closes the arenas, which stand-ins have used."""
        for each in self._workloads.values():
            each.stand_in = None
            if each.arena is not None:
                of(each.arena.device).close_arena(each.arena)
        self._workloads.clear()
        return {"op": "unmapped"}

    def _report_held(self, nonce: str, places: Places | None = None) -> None:
        """Tells the judge that a call or a loop can be released, with the locations of what it reads afterwards."""
        self._channel.send({"op": "held", "nonce": nonce, "places": _to_json(places)})

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._at.caller is not None
        if self._runtime is not None:
            self._runtime.set_block_order(request["block_order"])
            self._runtime.find_races(request["races"])
        caller, non_tensors = self._at.caller, _unpack(request["non_tensors"])
        self._late = partial(self._report_held, request["nonce"]) if request["late"] else None
        self._marks_passes = request["trace"] == "activities"

        def call() -> tuple[Sample, list[Any]]:
            return caller.call(non_tensors, request["random_seed"], request["blocking_ms"], request["set"])

        meter = of(self._device).allocator_meter() if request["memory"] else None
        if meter is not None:
            meter.begin_with_empty_cache()
        (sample, plain), activities = self._traced(call, request["trace"])
        peak = meter.peak() if meter is not None else None
        gc.collect()
        notes = {*caller.notes, *self._launch_errors(), *self._race_notes(), *self._no_gradients()}
        return {
            "op": "called", "device_ms": sample.device_ms, "forward_ms": sample.forward_ms, "drain_ms": sample.drain_ms,
            "blocked": sample.blocked, "memory": peak and astuple(peak),
            "non_tensors": [repr(value) for value in plain], "notes": sorted(notes),
            "activities": [[each.name, each.begin_us, each.end_us, each.launched and astuple(each.launched)]
                           for each in activities],
        }

    def _between_passes(self, count: int) -> None:
        """Takes the time stamp between the passes, and marks it in a profile. If the last inputs come late, waits until
        the judge has written them.
        """
        self._of_device.clock.mark()
        if self._marks_passes:
            self._of_device.clock.null(0)
        if self._late is None:
            return
        assert self._at.caller is not None
        of(self._device).synchronize()
        ask, self._late = self._late, None
        ask()
        self._channel.receive()
        self._at.caller.read_again(count)

    def _require_ordered(self, address: int, size: int) -> None:
        """Raises RuntimeError if a kernel writes to a result on a stream that nothing waits for. Only the CPU tells."""
        if self._runtime is not None and (unordered := self._runtime.find_unordered(address, size)):
            raise RuntimeError(f"inlinebench: {unordered}")

    def _launch_errors(self) -> list[str]:
        refused = self._runtime.take_refused_launch() if self._runtime else ""
        errors = self._of_device.launch_errors
        pending = errors.describe() if errors else ""
        return [f"{LAUNCH_REFUSED}{error}" for error in (refused, pending) if error]

    def _no_gradients(self) -> list[str]:
        without = self._at.both.without if self._at.both else ()
        return [f"{NO_GRADIENT}{name} is None" for name in without]

    def _race_notes(self) -> list[str]:
        return self._runtime.take_race_notes() if self._runtime else []

    def _traced(self, call: Callable[[], Value], what: Traced) -> tuple[Value, list[Activity]]:
        """Makes a call and traces it. Returns its value, and the GPU's activities if it is traced for them."""
        if what == "launches":
            return self._provenance.trace_launches(self._of_device.tracer, call), []
        if what == "activities":
            return self._of_device.tracer(self._provenance.watching_profilers()(call))
        return call(), []

    def _hold(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes one call that the judge releases and times."""
        assert self._at.caller is not None
        gc.collect()  # of what the last call left; after this one, the judge may still be timing
        plain = self._at.caller.hold(
            _unpack(request["non_tensors"]), request["random_seed"], request["set"], request["on_host"],
            partial(self._report_held, request["nonce"]))
        notes = sorted(self._at.caller.notes)
        return {"op": "held call", "non_tensors": [repr(value) for value in plain], "notes": notes}

    def _loop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes several calls in a loop, which the judge releases and times."""
        assert self._at.caller is not None
        calls = [(_unpack(call["non_tensors"]), call["random_seed"]) for call in request["calls"]]
        plain, written_over = self._at.caller.loop(calls, partial(self._report_held, request["nonce"]))
        gc.collect()
        return {"op": "looped", "non_tensors": [[repr(value) for value in each] for each in plain],
                "written_over": written_over}

    def _report(self, _: dict[str, Any]) -> dict[str, Any]:
        """Returns how many kernels the CPU runtime has run in calls."""
        launched = self._runtime.launches() if self._runtime else 0
        return {"op": "reported", "launches": launched - self._at.launched_before}

    def _report_provenance(self, _: dict[str, Any]) -> dict[str, Any]:
        """Returns where the kernels of this process come from."""
        return {"op": "provenance", **self._provenance.to_json()}

    def _build(self, facts: dict[str, Any]) -> str:
        """Asks the judge to build a library and returns its path. Raises RuntimeError if the build fails."""
        self._channel.send({"op": "build", "request": for_build(facts, self._files)})
        reply = self._channel.receive()
        if reply["reason"]:
            raise RuntimeError(f"the extension {facts['name']} was not built: {reply['reason']}")
        return str(reply["library"])


def _to_json(places: Places | None) -> list[Any] | None:
    return None if places is None else [None if place is None else place.to_json() for place in places]


def _unpack(text: str) -> Any:
    """Unpickles a value from the judge. A candidate trusts the judge, but not the other way round."""
    return pickle.loads(base64.b64decode(text))
