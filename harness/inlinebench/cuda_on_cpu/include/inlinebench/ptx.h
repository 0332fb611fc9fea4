// The instructions of inline PTX, which the translation (cuda_on_cpu/ptx/) calls by name.
#pragma once

#include "inlinebench/ptx_arithmetic.h"
#include "inlinebench/ptx_conversions.h"
#include "inlinebench/ptx_matrices.h"
#include "inlinebench/ptx_memory.h"
#include "inlinebench/ptx_registers.h"
#include "inlinebench/ptx_synchronization.h"
