"""Records, options, and the errors that a user sees. Imports no torch."""
