// Part of what nvcc declares implicitly.
#pragma once

#include "cuda_on_cpu/all.h"
