"""The version of this package, for those who cannot import the package itself."""

__version__ = "0.3.0"
