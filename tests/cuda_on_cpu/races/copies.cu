// Copies of whole ranges.
#include <cuda_pipeline.h>

#include "case.h"

KERNEL(copied_range) {
  int t = threadIdx.x;
  memcpy(scratch + t * (fixed ? 4 : 3), x + 4 * t, 16);  // @copied_range
}
PLANT_ON(copied_range, 1, 64, 0)

KERNEL(cleared_range) {
  int t = threadIdx.x;
  memset(scratch + 8 * t, t + 1, fixed ? 32 : 36);  // @cleared_range
}
PLANT_ON(cleared_range, 1, 64, 0)

KERNEL(async_copy) {
  __shared__ __align__(16) float tile[256];
  int t = threadIdx.x;
  __pipeline_memcpy_async(tile + 4 * t, x + 4 * t, 16);  // @async_copy
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (fixed) __syncthreads();
  out[blockIdx.x * 64 + t] = tile[t];  // @async_copy
}
PLANT(async_copy)

struct Row {
  float values[12];
};
KERNEL(copied_struct) {
  __shared__ Row rows[65];
  int t = threadIdx.x;
  for (float& value : rows[t].values) value = x[t];  // @copied_struct
  if (t == 0) rows[64] = Row{};
  if (fixed) __syncthreads();
  Row row = rows[t ^ 32];  // @copied_struct
  out[blockIdx.x * 64 + t] = row.values[t % 12];
}
PLANT(copied_struct)
