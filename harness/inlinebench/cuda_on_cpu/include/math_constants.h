#pragma once

#include "inlinebench/constants.h"
