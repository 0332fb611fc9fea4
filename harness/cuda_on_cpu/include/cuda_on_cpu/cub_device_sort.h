// cub::DeviceRadixSort, cub::DeviceSegmentedRadixSort.
#pragma once

#include "cuda_on_cpu/cub_device.h"

namespace cuda_on_cpu {

template <class Key, class Value>
struct SortedArrays {
  const Key* keys_in;
  Key* keys_out;
  const Value* values_in;
  Value* values_out;

  void sort(std::size_t first, std::size_t last, int begin, int end, bool descending) const {
    const std::size_t count = last - first;
    Private<std::uint32_t> order(count);
    Private<Key> keys(count);
    std::memcpy(keys.get(), keys_in + first, count * sizeof(Key));
    find_radix_order(keys.get(), order.get(), count, begin, end, descending);
    move(keys.get(), keys_out + first, order.get(), count);
    if constexpr (!std::is_same_v<Value, cub::NullType>) {
      Private<Value> values(count);
      std::memcpy(static_cast<void*>(values.get()), values_in + first, count * sizeof(Value));
      move(values.get(), values_out + first, order.get(), count);
    }
  }

 private:
  template <class T>
  static void move(const T* from, T* to, const std::uint32_t* order, std::size_t count) {
    Private<T> sorted(count);
    gather(from, sorted.get(), order, count);
    std::memcpy(static_cast<void*>(to), sorted.get(), count * sizeof(T));
  }
  template <class T>
  CUDA_ON_CPU_UNSEEN static void gather(const T* from, T* to, const std::uint32_t* order, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[order[i]];
  }
};

}  // namespace cuda_on_cpu

namespace cub {

// Sorting from one array into another needs temporary storage for all items; the result of a DoubleBuffer is in the
// buffer that was the alternate one.
#define CUDA_ON_CPU_KEY_BITS \
  int begin_bit = 0, int end_bit = 8 * sizeof(KeyT), cudaStream_t stream = 0, CUDA_ON_CPU_LINE
#define CUDA_ON_CPU_BITS begin_bit, end_bit, stream, line
#define CUDA_ON_CPU_SORTS(KEYS, PAIRS, DESCENDING)                                                                     \
  template <class KeyT, CUDA_ON_CPU_SEGMENT_TYPES>                                                                     \
  static cudaError_t KEYS(CUDA_ON_CPU_TEMP, const KeyT* d_keys_in, KeyT* d_keys_out, CUDA_ON_CPU_SEGMENTS,             \
                          CUDA_ON_CPU_KEY_BITS) {                                                                      \
    const ::cuda_on_cpu::SortedArrays<KeyT, NullType> arrays{d_keys_in, d_keys_out, nullptr, nullptr};                 \
    return sort(d_temp_storage, temp_storage_bytes, num_items * sizeof(KeyT), arrays, CUDA_ON_CPU_SEGMENT_NAMES,       \
                DESCENDING, CUDA_ON_CPU_BITS);                                                                         \
  }                                                                                                                    \
  template <class KeyT, class ValueT, CUDA_ON_CPU_SEGMENT_TYPES>                                                       \
  static cudaError_t PAIRS(CUDA_ON_CPU_TEMP, const KeyT* d_keys_in, KeyT* d_keys_out, const ValueT* d_values_in,       \
                           ValueT* d_values_out, CUDA_ON_CPU_SEGMENTS, CUDA_ON_CPU_KEY_BITS) {                         \
    const ::cuda_on_cpu::SortedArrays<KeyT, ValueT> arrays{d_keys_in, d_keys_out, d_values_in, d_values_out};          \
    return sort(d_temp_storage, temp_storage_bytes, num_items * (sizeof(KeyT) + sizeof(ValueT)), arrays,               \
                CUDA_ON_CPU_SEGMENT_NAMES, DESCENDING, CUDA_ON_CPU_BITS);                                              \
  }                                                                                                                    \
  template <class KeyT, CUDA_ON_CPU_SEGMENT_TYPES>                                                                     \
  static cudaError_t KEYS(CUDA_ON_CPU_TEMP, DoubleBuffer<KeyT>& d_keys, CUDA_ON_CPU_SEGMENTS, CUDA_ON_CPU_KEY_BITS) {  \
    const ::cuda_on_cpu::SortedArrays<KeyT, NullType> arrays{d_keys.Current(), d_keys.Alternate(), nullptr, nullptr};  \
    const cudaError_t error =                                                                                          \
        sort(d_temp_storage, temp_storage_bytes, 0, arrays, CUDA_ON_CPU_SEGMENT_NAMES, DESCENDING, CUDA_ON_CPU_BITS);  \
    if (d_temp_storage && error == cudaSuccess) d_keys.selector ^= 1;                                                  \
    return error;                                                                                                      \
  }                                                                                                                    \
  template <class KeyT, class ValueT, CUDA_ON_CPU_SEGMENT_TYPES>                                                       \
  static cudaError_t PAIRS(CUDA_ON_CPU_TEMP, DoubleBuffer<KeyT>& d_keys, DoubleBuffer<ValueT>& d_values,               \
                           CUDA_ON_CPU_SEGMENTS, CUDA_ON_CPU_KEY_BITS) {                                               \
    const ::cuda_on_cpu::SortedArrays<KeyT, ValueT> arrays{d_keys.Current(), d_keys.Alternate(), d_values.Current(),   \
                                                           d_values.Alternate()};                                      \
    const cudaError_t error =                                                                                          \
        sort(d_temp_storage, temp_storage_bytes, 0, arrays, CUDA_ON_CPU_SEGMENT_NAMES, DESCENDING, CUDA_ON_CPU_BITS);  \
    if (d_temp_storage && error == cudaSuccess) d_keys.selector ^= 1, d_values.selector ^= 1;                          \
    return error;                                                                                                      \
  }

struct DeviceRadixSort {
#define CUDA_ON_CPU_SEGMENT_TYPES class NumItemsT
#define CUDA_ON_CPU_SEGMENTS NumItemsT num_items
#define CUDA_ON_CPU_SEGMENT_NAMES num_items
  CUDA_ON_CPU_SORTS(SortKeys, SortPairs, false)
  CUDA_ON_CPU_SORTS(SortKeysDescending, SortPairsDescending, true)
#undef CUDA_ON_CPU_SEGMENT_TYPES
#undef CUDA_ON_CPU_SEGMENTS
#undef CUDA_ON_CPU_SEGMENT_NAMES

 private:
  template <class Arrays>
  static cudaError_t sort(CUDA_ON_CPU_TEMP, std::size_t bytes, const Arrays& arrays, std::size_t num_items,
                          bool descending, int begin_bit, int end_bit, cudaStream_t, int line) {
    return CUDA_ON_CPU_RUN("cub::DeviceRadixSort", ::cuda_on_cpu::small_storage + bytes,
                           arrays.sort(0, num_items, begin_bit, end_bit, descending));
  }
};

struct DeviceSegmentedRadixSort {
#define CUDA_ON_CPU_SEGMENT_TYPES class Begin, class End
#define CUDA_ON_CPU_SEGMENTS int num_items, int num_segments, Begin d_begin_offsets, End d_end_offsets
#define CUDA_ON_CPU_SEGMENT_NAMES num_segments, d_begin_offsets, d_end_offsets
  CUDA_ON_CPU_SORTS(SortKeys, SortPairs, false)
  CUDA_ON_CPU_SORTS(SortKeysDescending, SortPairsDescending, true)
#undef CUDA_ON_CPU_SEGMENT_TYPES
#undef CUDA_ON_CPU_SEGMENTS
#undef CUDA_ON_CPU_SEGMENT_NAMES

 private:
  template <class Arrays, class Begin, class End>
  static cudaError_t sort(CUDA_ON_CPU_TEMP, std::size_t bytes, const Arrays& arrays, int num_segments, Begin begins,
                          End ends, bool descending, int begin_bit, int end_bit, cudaStream_t, int line) {
    return CUDA_ON_CPU_RUN("cub::DeviceSegmentedRadixSort", ::cuda_on_cpu::small_storage + bytes,
                           for (int i = 0; i < num_segments; ++i) if (begins[i] < ends[i])
                               arrays.sort(begins[i], ends[i], begin_bit, end_bit, descending));
  }
};

#undef CUDA_ON_CPU_SORTS
#undef CUDA_ON_CPU_BITS
#undef CUDA_ON_CPU_KEY_BITS

}  // namespace cub

#undef CUDA_ON_CPU_RUN
#undef CUDA_ON_CPU_TEMP
#undef CUDA_ON_CPU_LINE
