"""`python -m inlinebench` is the command `inlinebench`."""

import sys

from inlinebench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
