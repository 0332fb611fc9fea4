"""Measures the false alarms of `inlinebench report --history` by simulation, and how soon it finds changes.

    python benchmarks/history.py                                   1,000 months of each kind; about 15 minutes
    python benchmarks/history.py --months 200                      fewer

It needs no GPU. A month has 30 days and two machines of one model. The time of a kernel in a run is its level times the
factor of the machine (standard deviation 1 %) times noise (0.5 %); 1 of 100 times is 2 to 20 % longer. So is that of
its reference. A report is made after each run; a month with a change in any of its reports has a false alarm.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from inlinebench.report.history.levels import LogTimes, Timeline, level_starts, run_factors  # noqa: E402

DAYS = 30
CHANGES = (0.02, 0.03, 0.05, 0.10, -0.03)
SOON = (4, 5, 7, 10)
"""Days after which it is asked whether a change is found."""


@dataclass(frozen=True)
class Suite:
    """What is simulated. Shares are standard deviations of logarithms, unless they are said to be something else."""

    problems: int = 33
    """The number of problems, each with one solution."""
    machine: float = 0.01
    """How much machines of one model differ, in all problems alike."""
    apart: float = 0.0
    """How much machines differ in each problem besides."""
    noise: float = 0.005
    """How much a time differs from run to run."""
    lasting: float = 0.0
    """The correlation of the noise of successive runs."""
    outliers: float = 0.01
    """The share of disturbed times, which are 2 to 20 % longer."""


def both(day: int) -> tuple[int, ...]:
    """Each day, both machines run the suite."""
    return 0, 1


def in_turn(day: int) -> tuple[int, ...]:
    """The machines take turns by day."""
    return (day % 2,)


def replaced(day: int) -> tuple[int, ...]:
    """The second machine replaces the first in the middle of the month."""
    return (int(day >= DAYS // 2),)


Machines = Callable[[int], tuple[int, ...]]
"""The machines that run the suite on a day."""
KINDS: tuple[tuple[str, Machines, Suite], ...] = (
    ("both machines, each day", both, Suite()),
    ("machines in turn", in_turn, Suite()),
    ("one replaces the other", replaced, Suite()),
    ("both; 0.5 % apart in each problem", both, Suite(apart=0.005)),
    ("one replaces the other; 0.5 % apart in each problem", replaced, Suite(apart=0.005)),
    ("both; 2 % of times disturbed", both, Suite(outliers=0.02)),
    ("both; noise of successive runs correlated by 0.7", both, Suite(lasting=0.7)),
    ("both; 1 problem", both, Suite(problems=1)),
    ("one replaces the other; 1 problem, 0.5 % apart", replaced, Suite(problems=1, apart=0.005)),
    ("one replaces the other; 7 problems, 0.5 % apart", replaced, Suite(problems=7, apart=0.005)),
    ("one replaces the other; 8 problems, 0.5 % apart", replaced, Suite(problems=8, apart=0.005)),
)
POWER = (*KINDS[:2], ("both; 1 problem", both, Suite(problems=1)))
"""Where it is measured how soon changes are found."""


def simulated(
    generator: random.Random, suite: Suite, machines: Machines, *, change: float = 0.0, since: int = DAYS,
    until: int = DAYS,
) -> list[list[int]]:
    """Returns the days at which levels of each solution start, after the first, in a report after the day `until`.

    The first solution is slower by the share `change` from the day `since` on. A report keeps what earlier ones said,
    so that of the last day has the false alarms of all days.
    """
    days = [day for day in range(until) for _ in machines(day)]
    used = [machine for day in range(until) for machine in machines(day)]
    shared = [generator.gauss(0, suite.machine) for _ in range(2)]

    def times() -> dict[int, float]:
        own = [factor + generator.gauss(0, suite.apart) for factor in shared]
        found, noise = {}, generator.gauss(0, suite.noise)
        for run, machine in enumerate(used):
            disturbed = generator.uniform(0.02, 0.2) if generator.random() < suite.outliers else 0.0
            found[run] = own[machine] + noise + disturbed
            noise = suite.lasting * noise + generator.gauss(0, suite.noise * math.sqrt(1 - suite.lasting**2))
        return found

    references = [times() for _ in range(suite.problems)]
    solutions = [times() for _ in range(suite.problems)]
    solutions[0] = {run: time + (math.log1p(change) if days[run] >= since else 0.0)
                    for run, time in solutions[0].items()}
    factors = run_factors(references, len(days))
    controls = [_corrected(each, factors) for each in references]
    timelines = [Timeline(tuple(each), tuple(each.values()), tuple(_corrected(each, factors).values()),
                          (0.0,) * len(each)) for each in solutions]
    return [[days[start] for start in starts[1:]] for starts in level_starts(timelines, controls)]


def _corrected(times: LogTimes, factors: list[float]) -> dict[int, float]:
    return {run: time - factors[run] for run, time in times.items()}


def false_alarms(suite: Suite, machines: Machines, months: int, seed: int = 0) -> tuple[int, int]:
    """Returns the number of months with a false alarm, and that of all false alarms."""
    generator = random.Random(seed)
    alarms = [sum(map(len, simulated(generator, suite, machines))) for _ in range(months)]
    return sum(map(bool, alarms)), sum(alarms)


def found(suite: Suite, machines: Machines, change: float, months: int, seed: int = 0) -> list[float]:
    """Returns the share of changes that a report finds after each number of days of `SOON`, and at last the share of
    those found after the most days whose place is within a day. Changes are in the middle of the month."""
    since = DAYS // 2
    shares = []
    for days in SOON:
        generator = random.Random(seed)
        starts = [simulated(generator, suite, machines, change=change, since=since, until=since + days)[0]
                  for _ in range(months)]
        shares.append(sum(map(bool, starts)) / months)
    places = [place for each in starts for place in each]
    return [*shares, sum(abs(place - since) <= 1 for place in places) / max(1, len(places))]


def main() -> int:
    """Prints two Markdown tables. Returns 1 if 1 % of the months of the first kind or more have a false alarm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", type=int, default=1000, help="months of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| machines | months | months with a false alarm | false alarms |\n| --- | --- | --- | --- |")
    counts = []
    for name, machines, suite in KINDS:
        bad, alarms = false_alarms(suite, machines, given.months, given.seed)
        counts.append(bad)
        print(f"| {name} | {given.months} | {bad} ({100 * bad / given.months:.2g} %) | {alarms} |", flush=True)
    print(f"\n| change | machines | {' | '.join(f'{days} days' for days in SOON)} | place within a day |")
    print("| --- " * (len(SOON) + 3) + "|")
    few = max(1, given.months // 10)
    for change in CHANGES:
        for name, machines, suite in POWER:
            shares = found(suite, machines, change, few, given.seed)
            print(f"| {change:+.0%} | {name} | {' | '.join(f'{share:.0%}' for share in shares)} |", flush=True)
    return int(counts[0] >= 0.01 * given.months)


if __name__ == "__main__":
    sys.exit(main())
