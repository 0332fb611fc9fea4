#pragma once

#include "inlinebench/bfloat16.h"
