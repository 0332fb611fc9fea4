#pragma once

#include "inlinebench/cublas.h"
