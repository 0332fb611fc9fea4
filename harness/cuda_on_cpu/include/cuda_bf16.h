#pragma once

#include "cuda_on_cpu/bfloat16.h"
