#pragma once

#include "inlinebench/wmma.h"
