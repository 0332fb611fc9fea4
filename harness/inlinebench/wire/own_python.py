"""Where the harness's own processes import modules from: a user's `json.py` must not replace Python's.

This module imports only what Python has imported at its start: it decides where the rest comes from.
"""

import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
"""The folder that contains this package."""
_STANDARD = os.path.dirname(os.path.realpath(os.__file__))
_LIBRARY = [_STANDARD, os.path.join(_STANDARD, "lib-dynload")]


def prefer_standard_library() -> None:
    """Moves Python's standard library to the front of this process's import path."""
    first = [path for path in sys.path if os.path.realpath(path) in _LIBRARY]
    sys.path[:] = [*first, *(path for path in sys.path if path not in first)]


def own_python() -> dict[str, str]:
    """Returns the environment variables of a Python process of the harness.

    It imports from this package and Python's standard library before the folders of PYTHONPATH and the current folder.
    """
    try:
        here = [os.getcwd()]
    except FileNotFoundError:
        here = []
    return {"PYTHONPATH": os.pathsep.join([PACKAGE, *_LIBRARY, *_named(), *here]), "PYTHONSAFEPATH": "1"}


def python_of_solutions() -> dict[str, str]:
    """Returns the environment variables of a Python process that a solution starts: this package, and PYTHONPATH."""
    return {"PYTHONPATH": os.pathsep.join([PACKAGE, *_named()])}


def _named() -> list[str]:
    """The folders of PYTHONPATH that `own_python` has not added."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [path for path in dict.fromkeys(named) if path and path not in (PACKAGE, *_LIBRARY)]
