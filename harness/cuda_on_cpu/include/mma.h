#pragma once

#include "cuda_on_cpu/wmma.h"
