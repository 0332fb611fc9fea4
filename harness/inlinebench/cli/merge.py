"""`inlinebench merge`: joins the files of several shards into one, as a single run would have written it."""

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
    """Writes the joined file. Raises UsageError."""
    parser = argparse.ArgumentParser(prog="inlinebench merge", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results, as --out wrote them")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="where they go; not there yet")
    given = parser.parse_args(arguments)
    if given.out.exists():
        raise UsageError(f"{given.out} is there already; results are not overwritten: name another file, or remove it")
    merged = merge(read_all(given.files))
    write(given.out, "".join(to_json(result) + "\n" for result in merged))
    print(f"{len(merged)} results in {given.out}")
    if doubles := several(merged):
        print(f"{len(doubles)} rows have several results, from other sources or devices: {', '.join(doubles[:5])}",
              file=sys.stderr)
    return 0


def merge(results: Iterable[Result]) -> list[Result]:
    """Each evaluation once, by problem, shape and solution; of several of one key on one device the last."""
    found = {(result.problem, result.shape, result.solution, result.device, result.key): result for result in results}
    return sorted(found.values(), key=lambda each: (natural(each.problem), each.shape, natural(each.solution)))


def several(results: Iterable[Result]) -> list[str]:
    """The rows that more than one result is of."""
    seen: dict[str, int] = {}
    for result in results:
        name = f"{result.problem}/{result.solution} {result.shape}"
        seen[name] = seen.get(name, 0) + 1
    return [name for name, count in seen.items() if count > 1]
