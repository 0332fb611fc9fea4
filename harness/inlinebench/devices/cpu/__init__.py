"""The CPU, on which CUDA sources run through `cuda_on_cpu`. Only modules of this folder import that package."""
