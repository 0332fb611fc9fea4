// Everything that nvcc declares implicitly.
#pragma once

#include <cassert>
#include <cfloat>
#include <climits>
#include <cstdio>

#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/vector_types.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/shared.h"
#include "cuda_on_cpu/sync.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/loads.h"
#include "cuda_on_cpu/runtime_api.h"
#include "cuda_on_cpu/cache_policy.h"
#include "cuda_on_cpu/clock.h"
#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/ptx.h"
#include "cuda_on_cpu/torch_types.h"
