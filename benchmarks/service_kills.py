"""Counts what a service loses, doubles or answers otherwise when it and its workers are killed. On the CPU.

    python benchmarks/service_kills.py                    10,000 answers, hours on two cores
    python benchmarks/service_kills.py --equal 0.8        the same, of which 2,000 are distinct
    python benchmarks/service_kills.py --answers 200 --server-kills 4 --worker-kills 10

1. A service answers one answer of each kind, without kills: right, wrong, raising, aborting, hanging, of no code, with
   a kernel, with one that is not built yet, and with one that does not compile. Their verdicts are what is expected.
2. It gets the answers, of drawn kinds, in batches of drawn sizes. Some equal an earlier one, whose result is reused.
3. Meanwhile, after drawn numbers of answers, it is killed with its process group (SIGKILL) and started again; every
   fourth time it is killed once more while it starts. Judges and forkservers are killed, too. Processes that run a
   solution are not, because a killed solution is a verdict of its own.
4. Every accepted answer is asked for again. The journal shows how often each was begun.

It prints a table of these figures:

| what                                                             | bar |
| ---------------------------------------------------------------- | --- |
| lost: accepted, and without a result or an error                 | 0   |
| doubled: two rows for one answer, or two results for one row     | 0   |
| answered otherwise: another verdict than without kills           | 0   |
| left behind: processes that outlive a killed service by 10 s     | 0   |
| left behind: temporary folders when the service has ended        | 0   |

Exit status: 1 if a bar is missed, else 0.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from service_kills_answers import PROBLEM, PlantedAnswer, answers, one_of_each  # noqa: E402
from service_kills_service import Service  # noqa: E402

from inlinebench import Client  # noqa: E402
from inlinebench.wire.processes import become_subreaper  # noqa: E402

BATCH = 50
"""The most answers of one request."""
TIMEOUT_S = 20.0
"""The time limit of a solution, which a hanging one exhausts."""
PATIENCE_S = 600.0
"""How long a client asks a killed service again, in seconds."""
OLDEST = 30
"""How many of those that wait longest the collector asks for at a time."""


@dataclass
class Collected:
    """What was sent, and what came back."""

    sent: dict[str, PlantedAnswer] = field(default_factory=dict)
    """The accepted answers by the name of their evaluation."""
    said: dict[str, str] = field(default_factory=dict)
    """What the service said first of each that was done, as JSON."""
    lock: Lock = field(default_factory=Lock)
    over: bool = False
    """Whether all were sent."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=10_000, metavar="N")
    parser.add_argument("--equal", type=float, default=0.1, metavar="X", help="share that equals an earlier answer")
    parser.add_argument("--server-kills", type=int, default=20, metavar="N")
    parser.add_argument("--worker-kills", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--max-waiting", type=int, default=500, metavar="N", help="of the service; more get a 429")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep built libraries here (default: not at all)")
    given = parser.parse_args()
    become_subreaper()  # what a killed service leaves behind is found below this process
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        service = Service(Path(folder), given.max_waiting)
        problem = Path(folder) / "twice.py"
        problem.write_text(PROBLEM)
        settings = {"device": "cpu", "check": True, "allow_library": True, "min_calls": 3, "timeout": TIMEOUT_S,
                    "cache": str((given.cache or Path(folder) / "cache").absolute())}
        service.start()
        service.wait()
        expected = verdicts(Client(service.socket), one_of_each(problem, settings))
        planted = answers(given.answers, given.equal, random.Random(given.seed), problem, settings)
        begin = time.monotonic()
        collected, killed = run(service, planted, given)
        seconds = time.monotonic() - begin
        again = {name: said(Client(service.socket), name) for name in collected.sent}
        service.end()
        distinct = len({each.body["source"] for each in planted})
        print(f"{given.answers} answers, {distinct} of them distinct, seed {given.seed}, {seconds:.0f} s: "
              f"{', '.join(killed)}")
        return report(service, expected, collected, again)


def verdicts(client: Client, planted: Sequence[PlantedAnswer]) -> dict[str, str]:
    """Returns the verdict of each kind of answer."""
    names = client.submit([each.body for each in planted])
    return {each.kind: client.result(name).verdict.value for each, name in zip(planted, names, strict=True)}


def run(
    service: Service, planted: Sequence[PlantedAnswer], given: argparse.Namespace
) -> tuple[Collected, list[str]]:
    """Sends the answers, kills, and waits until all are done. Returns what came back, and what was killed."""
    collected, draw = Collected(), random.Random(given.seed + 1)
    sizes = random.Random(given.seed + 2)
    threads = [Thread(target=send, args=(service.socket, planted, sizes, collected), daemon=True),
               Thread(target=collect, args=(service.socket, collected), daemon=True)]
    for thread in threads:
        thread.start()
    moments = sorted([(draw.randrange(len(planted)), "server") for _ in range(given.server_kills)]
                     + [(draw.randrange(len(planted)), "worker") for _ in range(given.worker_kills)])
    killed: Counter[str] = Counter()
    for done, what in moments:
        while len(collected.said) < done:
            time.sleep(0.02)
        time.sleep(draw.random())
        kind = "server" if what == "server" else kill_worker(service, draw)
        killed[kind] += 1
        if what == "server":
            kill_server(service, at_start=killed["server"] % 4 == 3)
        print(f"{len(collected.said)} of {len(planted)} done: {kind} killed", file=sys.stderr, flush=True)
    for thread in threads:
        thread.join()
    return collected, [f"{kind} killed {count} times" for kind, count in sorted(killed.items())]


def kill_server(service: Service, *, at_start: bool) -> None:
    service.kill()
    service.start()
    if at_start:
        time.sleep(1.0)
        service.kill()
        service.start()
    service.wait()


def kill_worker(service: Service, draw: random.Random) -> str:
    while not (kind := service.kill_worker(draw)):
        time.sleep(0.05)
    return kind


def send(socket: Path, planted: Sequence[PlantedAnswer], sizes: random.Random, collected: Collected) -> None:
    """Sends all answers in batches."""
    client, at = Client(socket, patience=PATIENCE_S), 0
    while at < len(planted):
        batch = planted[at:at + sizes.randint(1, BATCH)]
        names = client.submit([each.body for each in batch])
        with collected.lock:
            collected.sent.update(zip(names, batch, strict=True))
        at += len(batch)
    collected.over = True


def collect(socket: Path, collected: Collected) -> None:
    """Keeps what the service says of each evaluation when it is done."""
    client = Client(socket, patience=PATIENCE_S)
    while True:
        over = collected.over
        with collected.lock:
            open_ones = [name for name in collected.sent if name not in collected.said]
        if over and not open_ones:
            return
        for name in open_ones[:OLDEST]:
            text = said(client, name)
            if json.loads(text)["state"] == "done":
                collected.said[name] = text
        time.sleep(0.2)


def said(client: Client, name: str) -> str:
    """Returns what the service says of an evaluation."""
    return json.dumps(client._ask("GET", f"/evaluations/{name}"), sort_keys=True)


def report(service: Service, expected: dict[str, str], collected: Collected, again: dict[str, str]) -> int:
    """Prints the table. Returns the exit status."""
    with closing(sqlite3.connect(service.journal)) as journal:
        attempts = [count for (count,) in journal.execute("SELECT attempts FROM evaluations")]
    rows = len(attempts) - len(expected)
    shown = {name: json.loads(text) for name, text in again.items()}
    lost = [name for name, each in shown.items() if "result" not in each and "error" not in each]
    others = [name for name, text in again.items() if text != collected.said[name]]
    otherwise = {name: verdict for name, each in shown.items()
                 if (verdict := each["result"]["verdict"] if "result" in each else each.get("error"))
                 != expected[collected.sent[name].kind]}
    folders = [path.name for path in service.temporary.iterdir()]
    print(f"start until it answers: median {statistics.median(service.start_s):.1f} s, "
          f"at most {max(service.start_s):.1f} s")
    print(f"begun again: {sum(count > 1 for count in attempts)} answers, at most {max(attempts)} times; "
          f"reused: {sum(bool(each.get('reused')) for each in shown.values())}")
    print("\n| what | figure |\n| --- | --- |")
    figures = {"lost": len(lost),
               "doubled": len(others) + rows - len(collected.sent),
               "answered otherwise": len(otherwise), "processes left behind": len(service.left_behind),
               "folders left behind": len(folders)}
    for what, figure in figures.items():
        print(f"| {what} | {figure} |")
    for name, verdict in otherwise.items():
        each = shown[name]
        reason = each["result"].get("reason", "") if "result" in each else each["message"][-1500:]
        print(f"{collected.sent[name].kind}: {verdict}: {reason}", file=sys.stderr)
    print(*service.left_behind, *folders[:20], sep="\n", file=sys.stderr)
    return int(any(figures.values()))


if __name__ == "__main__":
    sys.exit(main())
