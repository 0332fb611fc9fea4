#pragma once

#include "cuda_on_cpu/half.h"
