"""Starts a candidate without a forkserver, for a tool that must start the program that it examines.

`python -m inlinebench.process.candidate_main REQUEST DESCRIPTORS...`: the request to a forkserver as JSON, and
inherited descriptors.
"""

from __future__ import annotations

import json
import sys

from inlinebench.process.forkserver import serve_judge
from inlinebench.sandbox.policy import Policy

if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    serve_judge(given, Policy.from_json(given["policy"]), [int(text) for text in sys.argv[2:]])
