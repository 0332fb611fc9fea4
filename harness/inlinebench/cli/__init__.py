"""The commands of `inlinebench`, each a module with a function `main`."""
