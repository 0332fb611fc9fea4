"""The candidate: the process that loads one solution and runs its calls.

It runs untrusted code, so the judge trusts none of its replies.
"""

NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With this environment variable, PyTorch detects GPUs through NVML, which does not start CUDA."""
FILES = "files"
"""The folder in a candidate's scratch folder that contains the copies of its solution's files, by their full paths."""
