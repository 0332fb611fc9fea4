#pragma once

#include "inlinebench/runtime_api.h"
