// Part of what nvcc declares without being asked.
#pragma once

#include "inlinebench/all.h"
