// Clocks count nanoseconds.
#pragma once

#include <chrono>

inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
