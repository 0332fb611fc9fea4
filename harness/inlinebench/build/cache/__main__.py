import sys

from inlinebench.build.cache.command import main

sys.exit(main(sys.argv[1:]))
