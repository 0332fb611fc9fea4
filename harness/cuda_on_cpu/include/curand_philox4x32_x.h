#pragma once

#include "cuda_on_cpu/curand_generators.h"
