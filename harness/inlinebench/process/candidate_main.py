"""A candidate without a forkserver, for a tool that has to start the program that it looks into.

`python -m inlinebench.process.candidate_main ORDER DESCRIPTORS...`: what a forkserver is sent, as JSON, and
inherited descriptors.
"""

from __future__ import annotations

import json
import sys

from inlinebench.process.forkserver import become_candidate

if __name__ == "__main__":
    become_candidate(json.loads(sys.argv[1]), [int(text) for text in sys.argv[2:]])
