#pragma once

#include "cuda_on_cpu/curand_distributions.h"
