"""Generates pages of the documentation when MkDocs builds it: options, verdicts and the schema of results.

A page has a line `<!-- generated: NAME -->`. The line and what follows it, which says where else the text is found, are
replaced on the site.
"""

from __future__ import annotations

import argparse
import html
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from inlinebench.cli import arguments
from inlinebench.cli.main import COMMANDS
from inlinebench.cli.parsing.parser import Parser
from inlinebench.options import OPTIONS
from inlinebench.results.result import Verdict
from inlinebench.results.result_schema import result_schema

MARK = "<!-- generated: "
SCHEMA_FILE = "result.schema.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the generated part of a page. Raises KeyError for a part that nothing generates."""
    before, mark, after = markdown.partition(MARK)
    return "\n".join([before, *PARTS[after.partition(" -->")[0]]()]) if mark else markdown


def on_post_build(config: Mapping[str, Any], **_: Any) -> None:
    """Puts the schema beside its page."""
    folder = Path(config["site_dir"], "reference")
    folder.joinpath(SCHEMA_FILE).write_text(json.dumps(result_schema(), indent=2), encoding="utf-8")


def options() -> Iterator[str]:
    """Yields the lines about all commands."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield f"## inlinebench {name}\n\n{parser.description}\n"
        yield f"```text\n{parser.format_usage()}```\n"
        for group in parser._action_groups:
            told = [action for action in group._group_actions if action.dest not in ("help", "version")]
            if told and group.title not in ("positional arguments", "options"):
                yield f"### {group.title} {{: #{name}-{str(group.title).replace(' ', '-')} }}\n"
            for action in told:
                yield from option(name, action, parser)
        if parser.epilog:
            yield f"```text\n{parser.epilog}\n```\n"


def parser_of(name: str) -> Parser:
    """Returns the parser of a command, with the defaults that it has without environment variables."""
    if name in arguments.EVALUATING:
        return arguments.parser_of(arguments.EVALUATING[name], f"inlinebench {name}")
    parser: Callable[[], Parser] = import_module(f"inlinebench.cli.{name}").parser
    return parser()


def option(command: str, action: argparse.Action, parser: Parser) -> Iterator[str]:
    """Yields a definition of an option, with an anchor: `run-half-width` for `--half-width` of `run`."""
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    names = ", ".join(f"{text}{value}" for text in action.option_strings) or str(action.metavar or action.dest)
    anchor = action.option_strings[-1].lstrip("-") if action.option_strings else action.dest
    yield f'<span id="{command}-{anchor}">`{names}`</span>'
    told = html.escape(parser._get_formatter()._expand_help(action), quote=False)
    known = OPTIONS.get(action.dest) if command in arguments.EVALUATING else None
    yield f":   {told}{f'. In Python: `{known.name}`' if known and known.scope != 'run' else ''}\n"


def verdicts() -> Iterator[str]:
    """Yields a table of all verdicts."""
    yield "|  | verdict | meaning | counts as a failure | says something about the solution |\n" + "| --- " * 5 + "|"
    for each in Verdict:
        answers = ("yes" if answer else "no" for answer in (each.is_failure, each.is_about_solution))
        yield f"| {each.symbol} | `{each}` | {each.meaning} | {' | '.join(answers)} |"


def schema() -> Iterator[str]:
    """Yields the lines about all records."""
    found = result_schema()
    yield f'<a href="../{SCHEMA_FILE}">{SCHEMA_FILE}</a> is the JSON Schema (draft 2020-12).\n'
    yield from record("Result", found)
    for name, each in found["$defs"].items():
        yield from record(name, each)


def record(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {name}\n\n{found['description']}\n"
    yield "| field | type | always there | meaning |\n| --- | --- | --- | --- |"
    for field, value in found["properties"].items():
        there = "yes" if field in found["required"] else ""
        yield f"| `{field}` | {kind(value)} | {there} | {value['description']} |"
    yield ""


def kind(value: Mapping[str, Any]) -> str:
    """Returns the type of a value as text."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    return f"list of {kind(value['items'])}" if value["type"] == "array" else str(value["type"])


PARTS: Mapping[str, Callable[[], Iterator[str]]] = {"options": options, "schema": schema, "verdicts": verdicts}
