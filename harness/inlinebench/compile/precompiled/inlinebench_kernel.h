// What nvcc includes unasked, and what the CUDA file that `load_inline` makes begins with.
#include <cuda_runtime.h>

#include <cuda.h>
#include <torch/types.h>
