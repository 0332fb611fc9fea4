// The instructions of inline PTX, which the translation (cuda_on_cpu/ptx/) calls by name.
#pragma once

#include "cuda_on_cpu/ptx_arithmetic.h"
#include "cuda_on_cpu/ptx_conversions.h"
#include "cuda_on_cpu/ptx_matrices.h"
#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/ptx_registers.h"
#include "cuda_on_cpu/ptx_synchronization.h"
