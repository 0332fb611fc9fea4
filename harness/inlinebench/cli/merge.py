"""`inlinebench merge`: joins the results of several shards into one file, as a single run would have written it.

Each result of a shard says which part of how many results it belongs to, so missing parts are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from inlinebench.catalog.natural_sort import natural
from inlinebench.cli.exits import say, show
from inlinebench.cli.files import read_all, write
from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.results.result import Result, Shard
from inlinebench.results.result_json import to_json


def main(arguments: Sequence[str]) -> int:
    """Writes the joined file and returns the exit status: 1 if results of a shard are missing. Raises UsageError."""
    given = parser().parse_args(arguments)
    if given.out.exists():
        raise UsageError(f"{given.out} already exists: name another file, or remove it")
    found = read_all(given.files)
    if not any(result.shard for result in found):
        say("no result is of a run with --shard, so it is not known whether any are missing")
    merged = merge(found)
    write(given.out, "".join(to_json(result) + "\n" for result in merged))
    show(f"{len(merged)} results in {given.out}")
    if doubles := several(merged):
        say(f"{len(doubles)} rows have several results, from different sources or devices: {', '.join(doubles[:5])}")
    gaps = missing(merged)
    for gap in gaps:
        say(f"inlinebench merge: {gap}")
    return int(bool(gaps))


def parser() -> Parser:
    found = Parser("inlinebench merge", "Joins the results of several shards into one file. The exit status is 1 if "
                   "results of a shard are missing.", examples="part*.jsonl -o results.jsonl")
    found.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results written by --out")
    found.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="a new file")
    return found


def merge(results: Iterable[Result]) -> list[Result]:
    """Each evaluation once, sorted by problem, shape and solution: the last one of those with the same key and device.

    A result that belongs to a shard comes before one that another shard added to compare its own results with.
    """
    ordered = sorted(results, key=lambda each: each.shard is not None)
    found = {(result.problem, result.shape, result.solution, result.device, result.key): result for result in ordered}
    return sorted(found.values(), key=lambda each: (natural(each.problem), each.shape, natural(each.solution)))


def missing(results: Sequence[Result]) -> list[str]:
    """Describes the shards whose results are missing; empty if there are all results of every sharded run."""
    runs: dict[tuple[int, int], set[tuple[str, str, str]]] = {}
    found: dict[Shard, set[tuple[str, str, str]]] = {}
    for result in results:
        if (shard := result.shard) is not None:
            row = (result.problem, result.solution, result.shape)
            found.setdefault(shard, set()).add(row)
            runs.setdefault((shard.parts, shard.rows), set()).add(row)
    gaps = []
    for parts, rows in (run for run, seen in runs.items() if len(seen) < run[1]):
        for shard in (Shard(part, parts, rows) for part in range(1, parts + 1)):
            there, wanted = len(found.get(shard, ())), len(range(rows)[shard.span])
            if there < wanted:
                name = f"{shard.part}/{shard.parts}"
                gaps.append(f"shard {name} has {there} of {wanted} results; run it again with --shard {name}"
                            + (" --resume" if there else ""))
    return gaps


def several(results: Iterable[Result]) -> list[str]:
    """The rows with more than one result."""
    seen: dict[str, int] = {}
    for result in results:
        name = f"{result.problem}/{result.solution} {result.shape}"
        seen[name] = seen.get(name, 0) + 1
    return [name for name, count in seen.items() if count > 1]
