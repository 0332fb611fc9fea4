#pragma once

#include "cuda_on_cpu/cublas.h"
