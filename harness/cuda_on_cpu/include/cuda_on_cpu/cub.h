// CUB's interface, as far as it runs on the CPU. Names that are not here are refused: the translator reads the
// supported ones from the text of these headers, so names that macros make stand in comments.
#pragma once

#include "cuda_on_cpu/cub_types.h"
#include "cuda_on_cpu/cub_parts.h"
#include "cuda_on_cpu/cub_reduce.h"
#include "cuda_on_cpu/cub_scan.h"
#include "cuda_on_cpu/cub_exchange.h"
#include "cuda_on_cpu/cub_sort.h"
#include "cuda_on_cpu/cub_device.h"
#include "cuda_on_cpu/cub_device_sort.h"
