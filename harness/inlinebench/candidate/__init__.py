"""The process that runs one solution. Nothing it says is believed; it is small enough to be read in one sitting."""

NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""Has torch ask the driver's library whether there is a GPU, which doesn't start CUDA."""
FILES = "files"
"""The folder in a candidate's scratch folder where the copies of its solution's files lie, by their whole paths."""
