"""The part of `cuda_on_cpu` that processes with foreign code use, for the rest of inlinebench to import."""

from cuda_on_cpu import Runtime, cuda_is_cpu, install

__all__ = ["Runtime", "cuda_is_cpu", "install"]
