#pragma once

#include "inlinebench/half.h"
