"""The command `inlinebench`: its dispatcher, its options, and a module for each command with a function `main`."""

from inlinebench.wire.own_python import prefer_standard_library

prefer_standard_library()  # before any other module of this package is imported
