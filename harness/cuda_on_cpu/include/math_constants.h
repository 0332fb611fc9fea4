#pragma once

#include "cuda_on_cpu/constants.h"
