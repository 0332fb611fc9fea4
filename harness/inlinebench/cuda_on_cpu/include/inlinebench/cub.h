// CUB's interface, as far as it runs on the CPU. Names that are not here are refused: the translator reads the
// supported ones from the text of these headers, so names that macros make stand in comments.
#pragma once

#include "inlinebench/cub_types.h"
#include "inlinebench/cub_parts.h"
#include "inlinebench/cub_reduce.h"
#include "inlinebench/cub_scan.h"
#include "inlinebench/cub_exchange.h"
#include "inlinebench/cub_sort.h"
#include "inlinebench/cub_device.h"
#include "inlinebench/cub_device_sort.h"
