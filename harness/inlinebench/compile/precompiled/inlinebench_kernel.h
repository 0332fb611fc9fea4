// The headers that nvcc includes implicitly, and the start of the CUDA file that `load_inline` makes.
#include <cuda_runtime.h>

#include <cuda.h>
#include <torch/types.h>
