// cub::DeviceReduce, cub::DeviceSegmentedReduce, cub::DeviceScan.
//
// Each runs as a launch of one thread, so that it counts as a kernel and its accesses are checked as those of kernels.
#pragma once

#include "cuda_on_cpu/cub_parts.h"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/runtime_api.h"

namespace cuda_on_cpu {

template <class Iterator>
using ValueAt = std::decay_t<decltype(std::declval<Iterator>()[0])>;

// CUB's protocol: with a null pointer only the size is given. `work` may find anything in the temporary storage.
template <class Work>
inline cudaError_t run_on_device(const char* name, int line, void* temp, std::size_t& temp_bytes, std::size_t needed,
                                 const Work& work) {
  if (!temp) return temp_bytes = needed, cudaSuccess;
  if (temp_bytes < needed) return cudaErrorInvalidValue;
  auto kernel = [&](void* data) {
    poison(data, needed);
    work();
  };
  Launcher(name, line, "temporary storage", kernel, Configuration(1, 1))(temp);
  return cudaPeekAtLastError();
}

constexpr std::size_t small_storage = 256;

template <class T, class Iterator, class Operator>
inline T fold_all(Iterator from, std::size_t first, std::size_t last, Operator& combine, const T& start) {
  if (first >= last) return start;
  if (last - first <= 8) {
    T result = from[first];
    for (std::size_t i = first + 1; i < last; ++i) result = combine(result, from[i]);
    return combine(start, result);
  }
  const std::size_t middle = first + (last - first) / 2;
  const T low = fold_all<T>(from, first, middle, combine, start);
  return fold_all<T>(from, middle, last, combine, low);
}

template <class Offset, class T, class Iterator, class Operator>
inline cub::KeyValuePair<Offset, T> fold_pairs(Iterator from, std::int64_t first, std::int64_t last, Operator combine,
                                               const T& none) {
  using Pair = cub::KeyValuePair<Offset, T>;
  if (first >= last) return Pair(1, none);
  Pair best(0, from[first]);
  for (std::int64_t i = first + 1; i < last; ++i) best = combine(best, Pair(static_cast<Offset>(i - first), from[i]));
  return best;
}

// Tile by tile, as CUB does it, so that rounding errors do not add up over all items.
template <class T, class In, class Out, class Operator>
inline void scan_all(In from, Out to, std::size_t count, Operator& combine, bool inclusive, const T* seed) {
  constexpr std::size_t tile = 1024;
  T before = seed ? *seed : T();
  bool has_before = seed;
  for (std::size_t first = 0; first < count; first += tile) {
    T sum = T();
    for (std::size_t i = first; i < count && i < first + tile; ++i) {
      const T own = from[i], previous = i == first ? before : has_before ? combine(before, sum) : sum;
      sum = i == first ? own : static_cast<T>(combine(sum, own));
      if (inclusive)
        to[i] = has_before ? static_cast<T>(combine(before, sum)) : sum;
      else
        to[i] = previous;
    }
    before = has_before ? static_cast<T>(combine(before, sum)) : sum;
    has_before = true;
  }
}

}  // namespace cuda_on_cpu

// cub_device_sort.h uses these as well.
#define CUDA_ON_CPU_LINE int line = __builtin_LINE()
#define CUDA_ON_CPU_TEMP void *d_temp_storage, std::size_t &temp_storage_bytes
#define CUDA_ON_CPU_RUN(NAME, NEEDED, ...)                                                                             \
  ::cuda_on_cpu::run_on_device(NAME, line, d_temp_storage, temp_storage_bytes, NEEDED, [&] { __VA_ARGS__; })

namespace cub {

struct DeviceReduce {
  template <class In, class Out, class NumItemsT, class ReductionOp, class T>
  static cudaError_t Reduce(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, ReductionOp op, T init,
                            cudaStream_t = 0, CUDA_ON_CPU_LINE) {
    using Sum = std::decay_t<decltype(op(init, d_in[0]))>;
    return CUDA_ON_CPU_RUN("cub::DeviceReduce", ::cuda_on_cpu::small_storage,
                           d_out[0] = ::cuda_on_cpu::fold_all<Sum>(d_in, 0, num_items, op, init));
  }
  template <class In, class Out, class NumItemsT>
  static cudaError_t Sum(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, cudaStream_t stream = 0,
                         CUDA_ON_CPU_LINE) {
    return Reduce(d_temp_storage, temp_storage_bytes, d_in, d_out, num_items, ::cuda::std::plus<>(),
                  ::cuda_on_cpu::ValueAt<Out>(), stream, line);
  }
  template <class In, class Out, class NumItemsT>
  static cudaError_t Min(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, cudaStream_t stream = 0,
                         CUDA_ON_CPU_LINE) {
    using T = ::cuda_on_cpu::ValueAt<In>;
    return Reduce(d_temp_storage, temp_storage_bytes, d_in, d_out, num_items, ::cuda::minimum<T>(),
                  ::cuda_on_cpu::largest<T>(), stream, line);
  }
  template <class In, class Out, class NumItemsT>
  static cudaError_t Max(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, cudaStream_t stream = 0,
                         CUDA_ON_CPU_LINE) {
    using T = ::cuda_on_cpu::ValueAt<In>;
    return Reduce(d_temp_storage, temp_storage_bytes, d_in, d_out, num_items, ::cuda::maximum<T>(),
                  ::cuda_on_cpu::lowest<T>(), stream, line);
  }

  // Into a cub::KeyValuePair<int, T>, or into a value and an index.
#define CUDA_ON_CPU_ARG(NAME, NONE)                                                                                    \
  template <class In, class Out>                                                                                       \
  static cudaError_t NAME(CUDA_ON_CPU_TEMP, In d_in, Out d_out, int num_items, cudaStream_t = 0, CUDA_ON_CPU_LINE) {   \
    using T = ::cuda_on_cpu::ValueAt<In>;                                                                              \
    return CUDA_ON_CPU_RUN("cub::DeviceReduce", ::cuda_on_cpu::small_storage,                                          \
        d_out[0] = ::cuda_on_cpu::fold_pairs<int>(d_in, 0, num_items, cub::NAME(), ::cuda_on_cpu::NONE<T>()));         \
  }                                                                                                                    \
  template <class In, class ValueOut, class IndexOut>                                                                  \
  static cudaError_t NAME(CUDA_ON_CPU_TEMP, In d_in, ValueOut d_value_out, IndexOut d_index_out,                   \
                          std::int64_t num_items, cudaStream_t = 0, CUDA_ON_CPU_LINE) {                                                        \
    using T = ::cuda_on_cpu::ValueAt<In>;                                                                              \
    return CUDA_ON_CPU_RUN("cub::DeviceReduce", ::cuda_on_cpu::small_storage,                                          \
        const T none = ::cuda_on_cpu::NONE<T>();                                                                       \
        auto best = ::cuda_on_cpu::fold_pairs<std::int64_t>(d_in, 0, num_items, cub::NAME(), none);                    \
        d_value_out[0] = best.value; d_index_out[0] = best.key);                                                       \
  }
  CUDA_ON_CPU_ARG(ArgMin, largest)
  CUDA_ON_CPU_ARG(ArgMax, lowest)
#undef CUDA_ON_CPU_ARG
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begin, class End, class ReductionOp, class T>
  static cudaError_t Reduce(CUDA_ON_CPU_TEMP, In d_in, Out d_out, std::int64_t num_segments, Begin d_begin_offsets,
                            End d_end_offsets, ReductionOp op, T initial_value, cudaStream_t = 0, CUDA_ON_CPU_LINE) {
    using Sum = std::decay_t<decltype(op(initial_value, d_in[0]))>;
    return CUDA_ON_CPU_RUN("cub::DeviceSegmentedReduce", ::cuda_on_cpu::small_storage,
        for (std::int64_t i = 0; i < num_segments; ++i)
            d_out[i] = ::cuda_on_cpu::fold_all<Sum>(d_in, d_begin_offsets[i], d_end_offsets[i], op, initial_value));
  }
#define CUDA_ON_CPU_SEGMENTED(NAME, OPERATOR, INITIAL)                                                                 \
  template <class In, class Out, class Begin, class End>                                                               \
  static cudaError_t NAME(CUDA_ON_CPU_TEMP, In d_in, Out d_out, std::int64_t num_segments, Begin d_begin_offsets,      \
                          End d_end_offsets, cudaStream_t stream = 0, CUDA_ON_CPU_LINE) {                              \
    using T = ::cuda_on_cpu::ValueAt<In>;                                                                              \
    return Reduce(d_temp_storage, temp_storage_bytes, d_in, d_out, num_segments, d_begin_offsets, d_end_offsets,       \
                  ::cuda::OPERATOR<T>(), INITIAL, stream, line);                                                       \
  }
  CUDA_ON_CPU_SEGMENTED(Sum, std::plus, T())
  CUDA_ON_CPU_SEGMENTED(Min, minimum, ::cuda_on_cpu::largest<T>())
  CUDA_ON_CPU_SEGMENTED(Max, maximum, ::cuda_on_cpu::lowest<T>())
#undef CUDA_ON_CPU_SEGMENTED
#define CUDA_ON_CPU_ARG(NAME, NONE)                                                                                    \
  template <class In, class Out, class Begin, class End>                                                               \
  static cudaError_t NAME(CUDA_ON_CPU_TEMP, In d_in, Out d_out, std::int64_t num_segments, Begin d_begin_offsets,      \
                          End d_end_offsets, cudaStream_t = 0, CUDA_ON_CPU_LINE) {                                     \
    const auto none = ::cuda_on_cpu::NONE<::cuda_on_cpu::ValueAt<In>>();                                               \
    return CUDA_ON_CPU_RUN("cub::DeviceSegmentedReduce", ::cuda_on_cpu::small_storage,                                 \
        for (std::int64_t i = 0; i < num_segments; ++i)                                                                \
            d_out[i] = ::cuda_on_cpu::fold_pairs<int>(d_in, d_begin_offsets[i], d_end_offsets[i], cub::NAME(), none)); \
  }
  CUDA_ON_CPU_ARG(ArgMin, largest)
  CUDA_ON_CPU_ARG(ArgMax, lowest)
#undef CUDA_ON_CPU_ARG
};

struct DeviceScan {
  template <class In, class Out, class NumItemsT>
  static cudaError_t ExclusiveSum(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, cudaStream_t = 0,
                                  CUDA_ON_CPU_LINE) {
    const ::cuda_on_cpu::ValueAt<In> zero{};
    return run(d_temp_storage, temp_storage_bytes, d_in, d_out, ::cuda::std::plus<>(), num_items, false, &zero, line);
  }
  template <class In, class Out, class NumItemsT>
  static cudaError_t InclusiveSum(CUDA_ON_CPU_TEMP, In d_in, Out d_out, NumItemsT num_items, cudaStream_t = 0,
                                  CUDA_ON_CPU_LINE) {
    const ::cuda_on_cpu::ValueAt<In>* none = nullptr;
    return run(d_temp_storage, temp_storage_bytes, d_in, d_out, ::cuda::std::plus<>(), num_items, true, none, line);
  }
  template <class In, class Out, class ScanOpT, class InitValueT, class NumItemsT>
  static cudaError_t ExclusiveScan(CUDA_ON_CPU_TEMP, In d_in, Out d_out, ScanOpT scan_op, InitValueT init_value,
                                   NumItemsT num_items, cudaStream_t = 0, CUDA_ON_CPU_LINE) {
    const std::decay_t<decltype(scan_op(init_value, d_in[0]))> start = init_value;
    return run(d_temp_storage, temp_storage_bytes, d_in, d_out, scan_op, num_items, false, &start, line);
  }
  template <class In, class Out, class ScanOpT, class NumItemsT>
  static cudaError_t InclusiveScan(CUDA_ON_CPU_TEMP, In d_in, Out d_out, ScanOpT scan_op, NumItemsT num_items,
                                   cudaStream_t = 0, CUDA_ON_CPU_LINE) {
    const ::cuda_on_cpu::ValueAt<In>* none = nullptr;
    return run(d_temp_storage, temp_storage_bytes, d_in, d_out, scan_op, num_items, true, none, line);
  }
  template <class In, class Out, class ScanOpT, class InitValueT, class NumItemsT>
  static cudaError_t InclusiveScanInit(CUDA_ON_CPU_TEMP, In d_in, Out d_out, ScanOpT scan_op, InitValueT init_value,
                                       NumItemsT num_items, cudaStream_t = 0, CUDA_ON_CPU_LINE) {
    const std::decay_t<decltype(scan_op(init_value, d_in[0]))> start = init_value;
    return run(d_temp_storage, temp_storage_bytes, d_in, d_out, scan_op, num_items, true, &start, line);
  }

  // In place.
  template <class Data, class NumItemsT>
  static cudaError_t ExclusiveSum(CUDA_ON_CPU_TEMP, Data d_data, NumItemsT num_items, cudaStream_t stream = 0,
                                  CUDA_ON_CPU_LINE) {
    return ExclusiveSum(d_temp_storage, temp_storage_bytes, d_data, d_data, num_items, stream, line);
  }
  template <class Data, class NumItemsT>
  static cudaError_t InclusiveSum(CUDA_ON_CPU_TEMP, Data d_data, NumItemsT num_items, cudaStream_t stream = 0,
                                  CUDA_ON_CPU_LINE) {
    return InclusiveSum(d_temp_storage, temp_storage_bytes, d_data, d_data, num_items, stream, line);
  }
  template <class Data, class ScanOpT, class InitValueT, class NumItemsT>
  static cudaError_t ExclusiveScan(CUDA_ON_CPU_TEMP, Data d_data, ScanOpT scan_op, InitValueT init_value,
                                   NumItemsT num_items, cudaStream_t stream = 0, CUDA_ON_CPU_LINE) {
    return ExclusiveScan(d_temp_storage, temp_storage_bytes, d_data, d_data, scan_op, init_value, num_items, stream,
                         line);
  }
  template <class Data, class ScanOpT, class NumItemsT>
  static cudaError_t InclusiveScan(CUDA_ON_CPU_TEMP, Data d_data, ScanOpT scan_op, NumItemsT num_items,
                                   cudaStream_t stream = 0, CUDA_ON_CPU_LINE) {
    return InclusiveScan(d_temp_storage, temp_storage_bytes, d_data, d_data, scan_op, num_items, stream, line);
  }

 private:
  template <class In, class Out, class ScanOpT, class T>
  static cudaError_t run(CUDA_ON_CPU_TEMP, In d_in, Out d_out, ScanOpT scan_op, std::size_t num_items, bool inclusive,
                         const T* seed, int line) {
    return CUDA_ON_CPU_RUN("cub::DeviceScan", ::cuda_on_cpu::small_storage,
                           ::cuda_on_cpu::scan_all<T>(d_in, d_out, num_items, scan_op, inclusive, seed));
  }
};

}  // namespace cub
