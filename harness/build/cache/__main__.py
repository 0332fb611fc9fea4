import sys

from harness.build.cache.command import main

sys.exit(main(sys.argv[1:]))
