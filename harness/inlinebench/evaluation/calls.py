"""Makes the calls of one candidate. Every call is compared.

The judge writes fresh inputs; the candidate runs `forward` and copies its outputs to the judge; the judge stops the
candidate, runs the reference on the same inputs, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

import torch

from inlinebench.devices.base import LAUNCH_REFUSED
from inlinebench.devices.cuda.state import GpuSample, GpuWatch, NoGpuState
from inlinebench.devices.registry import of
from inlinebench.evaluation.attempt import Tools
from inlinebench.evaluation.comparing import Answer, Comparing, Differs
from inlinebench.evaluation.correctness.thorough import ThoroughCalls
from inlinebench.evaluation.draws import Drawn, Draws
from inlinebench.evaluation.failures import UNINITIALISED, Failed
from inlinebench.evaluation.probes import LIMIT_S, MOST_SENTENCES, Probes, output_number
from inlinebench.evaluation.repeats import Repeats
from inlinebench.evaluation.requests import Requests
from inlinebench.evaluation.timings import Timings
from inlinebench.problem.forward import is_sticky
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.replies import Called
from inlinebench.results.result import Verdict
from inlinebench.timing.call import Sample
from inlinebench.timing.trace import Activity, Traced
from inlinebench.wire.backward import NO_GRADIENT

UNBLOCKED_SHARE = 0.1
"""The share of calls, drawn in secret, that run without the blocking kernel. Work on a stream that `forward` does not
join can finish behind the blocking kernel unnoticed; without it, this work is missing from the outputs."""
LATE_SHARE = 0.5
"""The share of calls with a backward that get the gradients of their outputs after `forward`, on a device whose times
count, if no times are taken."""
LATE_SHARE_OF_TIMED = 0.1
"""The same if times are taken, which do not count for late calls."""
CERTAIN_LATE = 2
"""How many of the calls that are certain to be made are late in any case, at secret places."""
RACE_CALLS = 2
"""How many calls look for data races on the CPU: one in each order of the blocks."""
SHUFFLED = ", blocks in shuffled order"
DRAWS = ("the reference's outputs depend on random numbers that it draws in forward: a solution must draw the same "
         "numbers from torch's generator, in the same order (both start each call with the same seed)")
"""A remark on a solution that differs from such a reference."""
AS_DRAWN = ("matches on inputs as drawn: if changed inputs are not meaningful here, set INPUT_VARIANTS = False in "
            "the problem")
"""A remark on a solution that differs only on changed inputs."""


class Calls:
    """The calls of one candidate. `notes` collects remarks for the record of the check.

    Args:
        workload: the problem at its shape, with the shared buffers.
        tools: what the judge provides.
        candidate: the process that makes the calls.
        requests: its requests.
        draws: draws what each call gets.
        comparing: compares the values.
        timings: gets the times.
    """

    def __init__(
        self, workload: Workload, tools: Tools, candidate: CandidateProcess, *, requests: Requests, draws: Draws,
        comparing: Comparing, timings: Timings,
    ) -> None:
        self._workload, self._tools, self._candidate = workload, tools, candidate
        self._requests, self._draws, self._comparing, self._timings = requests, draws, comparing, timings
        certain = tools.settings.warmup + tools.settings.sampling.least
        self._thorough = ThoroughCalls(len(workload.source.kinds), certain, draws.secret)
        self._late = LateCalls(certain, timed=tools.settings.timing, secret=draws.secret)
        self._matched_as_drawn = False
        self.notes: set[str] = set()
        self.explains = tools.settings.sanitize is None
        """Whether to find out what a wrong output depends on."""
        self.remarks = True
        """Whether to find out if only changed inputs are to blame for a call that differs, by another call."""

    def make(self, number: int, *, counted: bool, variant: Variant | None = None) -> None:
        """Makes one call of the solution and one of the reference on the same inputs. Compares them and adds the times.

        `variant` is drawn if it is None. Raises Failed if the solution changed inputs that the reference does not
        change, or if values differ.
        """
        made = self._ask(self._draws.next(variant=variant), number)
        sample, tensors = self._compare(made, f"call {number}", thorough=self._thorough.next(made.call.variant))
        self._timings.add_reference(sample, counted)
        if self._tools.baselines is not None:
            call = made.call
            self._timings.add_baselines(self._tools.baselines.time(tensors, call.non_tensors, call.random_seed))
        if counted:
            self._timings.add_solution(
                made.called.sample, self._requests.synchronises and not made.late, str(made.call.variant), made.state)

    def make_again(self) -> None:
        """Makes a call after those at other workloads, and compares it in each element by the rule. Raises Failed."""
        made = self._ask(self._draws.next(), 0)
        self._compare(made, "a call", thorough=True)

    def repeat(self, repeats: Repeats) -> None:
        """Makes calls on the same inputs. They are compared with each other, and with the reference. Raises Failed."""
        repeats.make(self._repeated, self._draws.next_set)

    def repeat_rows(self, repeats: Repeats) -> None:
        """Makes calls on other rows of the same inputs. They are compared with each other only. Raises Failed."""
        repeats.make_with_rows_moved(self._outputs, self._draws.next_set())
        repeats.make_with_first_row(self._ask_alone)

    def trace(self, what: Traced) -> tuple[Activity, ...]:
        """Makes, traces and compares one call. Returns the GPU's activities if it is traced for them. Raises Failed."""
        made = self._ask(self._draws.next(), 0, trace=what)
        self._compare(made, "a profiled call")
        return made.called.activities

    def check(self, call: Drawn, answer: Answer, what: str, *, thorough: bool = False) -> None:
        """Compares a call that was not made here, in each element by the rule if `thorough`. Raises Failed."""
        label = f"{what} ({call.change})"
        self._check_inputs(call, label)
        try:
            self._comparing.compare(call, answer, what, thorough=thorough)
        except Differs as differs:
            raise self._wrong(label, differs, self._remarks(call.variant, 0)) from None

    def _ask(self, call: Drawn, number: int, trace: Traced = "nothing", ordered_as: int | None = None) -> _Made:
        """Has the candidate make a call, and stops it.

        Blocks run in the order of the call with the number `ordered_as`, if that is another one.
        """
        late = self._comes_late(number, trace)
        blocked = not late and self._choose_blocked(number, trace)
        self._workload.hand_over(call.buffer_set, gradients_late=late)
        order = self._choose_block_order(number if ordered_as is None else ordered_as)
        memory = self._requests.memory
        with memory.growing():
            called = self._requests.call(
                call, blocked=blocked, trace=trace, block_order=order, races=0 < number <= RACE_CALLS, late=late,
                memory=memory.measures(number))
            state = self._gpu_state()
            self._candidate.stop()
        if memory.measures(number):
            memory.end(called.memory)
        # A kernel may read what nothing wrote and discard it, and a gradient of None may be right, so these alone say
        # nothing about a result.
        self.notes.update(note for note in called.notes if not note.startswith((UNINITIALISED, NO_GRADIENT)))
        return _Made(call, number, called, state, SHUFFLED if order else "", late)

    def _compare(
        self, made: _Made, what: str, *, thorough: bool = False, answer: Answer | None = None
    ) -> tuple[Sample, list[torch.Tensor]]:
        """Compares a call, whose answer may have been received before. Returns the reference's time, and its inputs
        after the call. Raises Failed."""
        call, called = made.call, made.called
        label = f"{what} ({call.change}{made.shuffled})"
        self._check_inputs(call, label)
        # From here on, nothing is read that the candidate, or work that it left on the GPU, could still write.
        answer = answer or self._receive(made)
        try:
            found = self._comparing.compare(
                call, answer, what + made.shuffled, blocked=self._timings.warm, thorough=thorough)
        except Differs as differs:
            errors = [note for note in called.notes if note.startswith((LAUNCH_REFUSED, UNINITIALISED))]
            errors += self._without_gradient(called, differs)
            failed = self._wrong(label, differs, errors or self._remarks(call.variant, made.number))
            raise (failed if errors else self._explained(failed, call.variant)) from None
        self._matched_as_drawn = self._matched_as_drawn or (call.variant is Variant.PLAIN and thorough)
        return found

    def _wrong(self, label: str, differs: Differs, remarks: Sequence[str]) -> Failed:
        """Returns the exception for a call that differs, with remarks on the cause."""
        self.notes.update(remarks)
        return Failed(Verdict.WRONG, "; ".join([f"{label}: {differs}", *remarks]), differs.mismatch)

    @staticmethod
    def _without_gradient(called: Called, differs: Differs) -> list[str]:
        """Returns what to do if the tensor that differs is a gradient, and autograd has not computed it."""
        what = differs.mismatch.what if differs.mismatch else None
        if f"{NO_GRADIENT}{what} is None" not in called.notes:
            return []
        return [f"autograd returns None for the {what}, which counts as zeros: compute the output from it in forward, "
                "and return its gradient in backward"]

    def _explained(self, failed: Failed, variant: Variant) -> Failed:
        """Returns the failure with sentences about what the wrong output depends on, if any are found."""
        found, probed = failed.mismatch, self._workload.probed
        output = None if found is None else output_number(found.what)
        if not self.explains or found is None or output is None or variant is not Variant.PLAIN:
            return failed  # on a variant alone, the solution reads the right values
        if probed.random or probed.mutated or not probed.perturbable:
            return failed
        self._tools.progress("finding out what the output depends on")
        self._candidate.budget = min(self._candidate.budget, LIMIT_S)
        sentences = list[str]()
        try:
            probes = Probes(self._workload, self._comparing.states(), self._outputs)
            sentences += islice(probes.sentences(self._draws.next(variant=variant), output), MOST_SENTENCES)
        except Exception as error:  # whatever the solution or the reference does now, the verdict is decided
            if is_sticky(error):
                raise
        return Failed(failed.verdict, failed.reason, replace(found, patterns=(*found.patterns, *sentences)))

    def _receive(self, made: _Made) -> Answer:
        return Answer(self._workload.receive(made.call.buffer_set), made.called.non_tensors)

    def _outputs(self, call: Drawn) -> Sequence[torch.Tensor]:
        """Returns the outputs of another call of the solution, in private memory, with blocks in the usual order."""
        self._ask(call, 0, ordered_as=1)
        return self._workload.receive(call.buffer_set).outputs

    def _repeated(self, call: Drawn, number: int) -> Sequence[torch.Tensor]:
        """Makes and compares a call. Returns what it computes, in private memory."""
        made = self._ask(call, RACE_CALLS + number)
        answer = self._receive(made)
        self._compare(made, "a call on the same inputs", answer=answer)
        return [*answer.received.outputs, *answer.received.inputs.values()]

    def _ask_alone(self, call: Drawn) -> None:
        """Has the candidate make a call on buffers that are no full set, and stops it."""
        self._requests.call(call, blocked=False, trace="nothing", block_order=0, races=False, late=False)
        self._candidate.stop()

    def _remarks(self, variant: Variant, number: int) -> list[str]:
        """Returns remarks on a call that differs: whether random numbers or only changed inputs may be to blame.

        Makes another thorough call on inputs as drawn if there was none yet. Raises Failed if that call fails, too.
        """
        draws = [DRAWS] if self._workload.probed.random else []
        if variant is Variant.PLAIN or not self.remarks:
            return draws
        if not self._matched_as_drawn:
            made = self._ask(self._draws.next(variant=Variant.PLAIN), number + 1, ordered_as=number)
            self._compare(made, f"call {number + 1}", thorough=True)
        return [*draws, AS_DRAWN]

    def _choose_blocked(self, number: int, trace: Traced) -> bool:
        """Whether to queue a call behind the blocking kernel."""
        # The first call loads kernels and allocates, which waits for the device, so the blocking kernel would time out.
        # The one whose memory is measured allocates again.
        allocates = number <= 1 or self._requests.memory.measures(number)
        blocked = trace != "nothing" or (not allocates and self._draws.secret.random() >= UNBLOCKED_SHARE)
        return blocked and self._tools.settings.sanitize is None  # a sanitizer waits for each kernel

    def _comes_late(self, number: int, trace: Traced) -> bool:
        """Whether the gradients of the outputs are handed over after `forward`, and others are in their place before.

        A `forward` that reads them has then computed other gradients. It must have ended, so such a call is not behind
        the blocking kernel, and no call that is traced. Where times are not compared, all calls are such calls.
        """
        if not self._workload.gradients_given:
            return False
        if not of(self._workload.device).kind.times_are_comparable:
            return True
        return trace == "nothing" and self._late.contains(number)

    def _choose_block_order(self, number: int) -> int:
        """Returns the seed that shuffles the order of thread blocks on the CPU, or 0 for the usual order.

        Every second call is shuffled, so that a race between blocks shows in the outputs. Always 0 on a device that
        needs no emulation.
        """
        if not of(self._workload.device).kind.emulates_cuda or number % 2:
            return 0
        return self._draws.public.randrange(1, 1 << 31)

    def _gpu_state(self) -> GpuSample | None:
        """Returns the GPU's clocks, temperature and power right after a call, or None if they cannot be read."""
        watch = self._tools.watch
        if not isinstance(watch, GpuWatch):
            return None
        try:
            return watch.sample()
        except NoGpuState as error:
            self._timings.gpu_unknown = str(error)
            return None

    def _check_inputs(self, call: Drawn, label: str) -> None:
        if self._comparing.inputs_changed(call):
            raise Failed(Verdict.WRONG, f"{label}: the solution changed its inputs; the reference does not")


class LateCalls:
    """Chooses in secret which calls with a backward get the gradients of their outputs late, some of them for certain.

    A late call waits for the device, and with it for streams that are never joined, so not all are late.

    Args:
        certain: the number of calls that are certain to be made.
        timed: whether times are taken.
        secret: the source of the choice.
    """

    def __init__(self, certain: int, *, timed: bool, secret: Random) -> None:
        self._share, self._secret = LATE_SHARE_OF_TIMED if timed else LATE_SHARE, secret
        self._certain = frozenset(secret.sample(range(1, certain + 1), min(CERTAIN_LATE, certain)))

    def contains(self, number: int) -> bool:
        """Whether the call with this number is late. Ask once for each call."""
        return self._secret.random() < self._share or number in self._certain


@dataclass(frozen=True)
class _Made:
    """A call that the candidate has made."""

    call: Drawn
    number: int
    called: Called
    state: GpuSample | None
    """The GPU's state right after it."""
    shuffled: str
    """`SHUFFLED` if its blocks ran in shuffled order, or ""."""
    late: bool
    """Whether it got the gradients of its outputs after `forward`, which takes time."""
