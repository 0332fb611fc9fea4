"""What `inlinebench` can be asked for, each command a module with a `main`."""
