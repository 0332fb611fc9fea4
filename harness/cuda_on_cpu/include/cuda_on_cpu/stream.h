// Streams and events exist in name only: everything runs at once, in program order.
#pragma once

struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using CUstream = cudaStream_t;
using CUevent = cudaEvent_t;
