// Part of what nvcc declares implicitly.
#pragma once

#include "inlinebench/all.h"
