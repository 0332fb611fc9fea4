"""The description of the HTTP interface, made from the records, so that it cannot differ from them."""

from __future__ import annotations

from typing import Any

from inlinebench.results.result_schema import result_schema
from inlinebench.serve.request import ID, SETTINGS
from inlinebench.version import __version__

_TEXT = {"type": "string"}


def openapi() -> dict[str, Any]:
    """Returns the description in OpenAPI 3.1."""
    settings = {name: {"description": f"{each.help}. Write {each.kind.wanted}."} for name, each in SETTINGS.items()}
    asked = {
        "type": "object",
        "required": ["problem"],
        "additionalProperties": False,
        "description": "One of source, response and solution says what is evaluated.",
        "properties": {
            "problem": {**_TEXT, "description": "The name of a problem; over the user's own socket, also its path."},
            "source": {**_TEXT, "description": "The text of a solution file."},
            "response": {**_TEXT, "description": "A model's response: its last code block that defines ModelNew."},
            "solution": {**_TEXT, "description": "The path of a solution file; only over the user's own socket."},
            "settings": {"type": "object", "additionalProperties": False, "properties": settings},
            "reuse": {"type": "boolean", "default": True, "description": "Whether a solution that equals an earlier "
                      "one of the caller gets its result."},
            "id": {**_TEXT, "pattern": ID.pattern, "description": "A name of the caller's choice for the evaluation. A "
                   "request that is repeated with it is accepted once."},
        },
    }
    entry = {
        "type": "object",
        "required": ["id", "state"],
        "properties": {"id": _TEXT, "state": {"enum": ["queued", "running", "done"]}, "result": result_schema(),
                       "reused": {"type": "boolean", "description": "Whether the result is that of an equal evaluation "
                                  "before."},
                       "error": _TEXT, "message": _TEXT},
    }
    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
    wait = {"name": "wait", "in": "query", "schema": {"type": "number"},
            "description": "How many seconds to wait until it is done."}
    one_or_more = {"oneOf": [asked, {"type": "array", "items": asked}]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "inlinebench", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/evaluations": {"post": {
                "summary": "Accept one evaluation, or a list of them",
                "requestBody": {"required": True, "content": {"application/json": {"schema": one_or_more}}},
                "responses": {"202": _json("Accepted", {"oneOf": [entry, {"type": "array", "items": entry}]}),
                              "413": _said("The body is too large"), "422": _said("It cannot be evaluated"),
                              "429": _said("Too many of the caller wait: try again after Retry-After seconds")},
            }},
            "/evaluations/{name}": {"get": {
                "summary": "Show an evaluation with its result or error", "parameters": [name, wait],
                "responses": {"200": _json("The evaluation", entry), "404": _said("There is none of this caller")},
            }},
            "/evaluations/{name}/events": {"get": {
                "summary": "Stream an evaluation as server-sent events whenever its state changes",
                "parameters": [name], "responses": {"200": {"description": "Events", "content": {
                    "text/event-stream": {"schema": _TEXT}}}},
            }},
            "/health": {"get": {"summary": "Show the version and how much is to do",
                                "responses": {"200": {"description": "The service works"}}}},
            "/metrics": {"get": {"summary": "Show counters as Prometheus reads them",
                                 "responses": {"200": {"description": "Metrics"}}}},
        },
    }


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _said(description: str) -> dict[str, Any]:
    return _json(description, {"type": "object", "properties": {"message": _TEXT}})
