#pragma once

#include "inlinebench/cub.h"
