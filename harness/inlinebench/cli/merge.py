"""`inlinebench merge`: joins the results of several shards into one file, as a single run would have written it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from inlinebench.cli.files import read_all, write
from inlinebench.records.errors import UsageError
from inlinebench.records.natural_sort import natural
from inlinebench.records.result import Result, to_json


def main(arguments: Sequence[str]) -> int:
    """Writes the joined file and returns the exit status. Raises UsageError."""
    parser = argparse.ArgumentParser(prog="inlinebench merge",
                                     description="Joins the results of several shards into one file.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results written by --out")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="a new file")
    given = parser.parse_args(arguments)
    if given.out.exists():
        raise UsageError(f"{given.out} already exists: name another file, or remove it")
    merged = merge(read_all(given.files))
    write(given.out, "".join(to_json(result) + "\n" for result in merged))
    print(f"{len(merged)} results in {given.out}")
    if doubles := several(merged):
        print(f"{len(doubles)} rows have several results, from different sources or devices: {', '.join(doubles[:5])}",
              file=sys.stderr)
    return 0


def merge(results: Iterable[Result]) -> list[Result]:
    """Each evaluation once, sorted by problem, shape and solution: the last one of those with the same key and device.
    """
    found = {(result.problem, result.shape, result.solution, result.device, result.key): result for result in results}
    return sorted(found.values(), key=lambda each: (natural(each.problem), each.shape, natural(each.solution)))


def several(results: Iterable[Result]) -> list[str]:
    """The rows with more than one result."""
    seen: dict[str, int] = {}
    for result in results:
        name = f"{result.problem}/{result.solution} {result.shape}"
        seen[name] = seen.get(name, 0) + 1
    return [name for name, count in seen.items() if count > 1]
