// Everything that nvcc declares implicitly.
#pragma once

#include <cassert>
#include <cfloat>
#include <climits>
#include <cstdio>

#include "inlinebench/qualifiers.h"
#include "inlinebench/vector_types.h"
#include "inlinebench/runtime.h"
#include "inlinebench/launch.h"
#include "inlinebench/shared.h"
#include "inlinebench/sync.h"
#include "inlinebench/math.h"
#include "inlinebench/loads.h"
#include "inlinebench/runtime_api.h"
#include "inlinebench/cache_policy.h"
#include "inlinebench/clock.h"
#include "inlinebench/atomics.h"
#include "inlinebench/ptx.h"
#include "inlinebench/torch_types.h"
