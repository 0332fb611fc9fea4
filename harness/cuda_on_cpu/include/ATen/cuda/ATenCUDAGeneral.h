#pragma once

#include "cuda_on_cpu/runtime_api.h"
