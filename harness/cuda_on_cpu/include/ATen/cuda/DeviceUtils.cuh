// torch's names for warp operations.
#pragma once

#include "cuda_on_cpu/sync.h"

inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffffu) { return __ballot_sync(mask, predicate); }
inline unsigned ACTIVE_MASK() { return __activemask(); }
template <class T>
inline T WARP_SHFL(T value, int source, int width = warpSize, unsigned mask = 0xffffffffu) { return __shfl_sync(mask, value, source, width); }
template <class T>
inline T WARP_SHFL_UP(T value, unsigned delta, int width = warpSize, unsigned mask = 0xffffffffu) { return __shfl_up_sync(mask, value, delta, width); }
template <class T>
inline T WARP_SHFL_DOWN(T value, unsigned delta, int width = warpSize, unsigned mask = 0xffffffffu) { return __shfl_down_sync(mask, value, delta, width); }
template <class T>
inline T WARP_SHFL_XOR(T value, int lane_mask, int width = warpSize, unsigned mask = 0xffffffffu) { return __shfl_xor_sync(mask, value, lane_mask, width); }
