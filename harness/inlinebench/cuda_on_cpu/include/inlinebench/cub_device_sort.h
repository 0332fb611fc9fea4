// cub::DeviceRadixSort, cub::DeviceSegmentedRadixSort.
#pragma once

#include "inlinebench/cub_device.h"

namespace inlinebench {

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
  INLINEBENCH_UNSEEN static void gather(const T* from, T* to, const std::uint32_t* order, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[order[i]];
  }
};

}  // namespace inlinebench

namespace cub {

// Sorting from one array into another needs temporary storage for all items; the result of a DoubleBuffer is in the
// buffer that was the alternate one.
#define INLINEBENCH_KEY_BITS \
  int begin_bit = 0, int end_bit = 8 * sizeof(KeyT), cudaStream_t stream = 0, INLINEBENCH_LINE
#define INLINEBENCH_BITS begin_bit, end_bit, stream, line
#define INLINEBENCH_SORTS(KEYS, PAIRS, DESCENDING)                                                                     \
  template <class KeyT, INLINEBENCH_SEGMENT_TYPES>                                                                     \
  static cudaError_t KEYS(INLINEBENCH_TEMP, const KeyT* d_keys_in, KeyT* d_keys_out, INLINEBENCH_SEGMENTS,             \
                          INLINEBENCH_KEY_BITS) {                                                                      \
    const ::inlinebench::SortedArrays<KeyT, NullType> arrays{d_keys_in, d_keys_out, nullptr, nullptr};                 \
    return sort(d_temp_storage, temp_storage_bytes, num_items * sizeof(KeyT), arrays, INLINEBENCH_SEGMENT_NAMES,       \
                DESCENDING, INLINEBENCH_BITS);                                                                         \
  }                                                                                                                    \
  template <class KeyT, class ValueT, INLINEBENCH_SEGMENT_TYPES>                                                       \
  static cudaError_t PAIRS(INLINEBENCH_TEMP, const KeyT* d_keys_in, KeyT* d_keys_out, const ValueT* d_values_in,       \
                           ValueT* d_values_out, INLINEBENCH_SEGMENTS, INLINEBENCH_KEY_BITS) {                         \
    const ::inlinebench::SortedArrays<KeyT, ValueT> arrays{d_keys_in, d_keys_out, d_values_in, d_values_out};          \
    return sort(d_temp_storage, temp_storage_bytes, num_items * (sizeof(KeyT) + sizeof(ValueT)), arrays,               \
                INLINEBENCH_SEGMENT_NAMES, DESCENDING, INLINEBENCH_BITS);                                              \
  }                                                                                                                    \
  template <class KeyT, INLINEBENCH_SEGMENT_TYPES>                                                                     \
  static cudaError_t KEYS(INLINEBENCH_TEMP, DoubleBuffer<KeyT>& d_keys, INLINEBENCH_SEGMENTS, INLINEBENCH_KEY_BITS) {  \
    const ::inlinebench::SortedArrays<KeyT, NullType> arrays{d_keys.Current(), d_keys.Alternate(), nullptr, nullptr};  \
    const cudaError_t error =                                                                                          \
        sort(d_temp_storage, temp_storage_bytes, 0, arrays, INLINEBENCH_SEGMENT_NAMES, DESCENDING, INLINEBENCH_BITS);  \
    if (d_temp_storage && error == cudaSuccess) d_keys.selector ^= 1;                                                  \
    return error;                                                                                                      \
  }                                                                                                                    \
  template <class KeyT, class ValueT, INLINEBENCH_SEGMENT_TYPES>                                                       \
  static cudaError_t PAIRS(INLINEBENCH_TEMP, DoubleBuffer<KeyT>& d_keys, DoubleBuffer<ValueT>& d_values,               \
                           INLINEBENCH_SEGMENTS, INLINEBENCH_KEY_BITS) {                                               \
    const ::inlinebench::SortedArrays<KeyT, ValueT> arrays{d_keys.Current(), d_keys.Alternate(), d_values.Current(),   \
                                                           d_values.Alternate()};                                      \
    const cudaError_t error =                                                                                          \
        sort(d_temp_storage, temp_storage_bytes, 0, arrays, INLINEBENCH_SEGMENT_NAMES, DESCENDING, INLINEBENCH_BITS);  \
    if (d_temp_storage && error == cudaSuccess) d_keys.selector ^= 1, d_values.selector ^= 1;                          \
    return error;                                                                                                      \
  }

struct DeviceRadixSort {
#define INLINEBENCH_SEGMENT_TYPES class NumItemsT
#define INLINEBENCH_SEGMENTS NumItemsT num_items
#define INLINEBENCH_SEGMENT_NAMES num_items
  INLINEBENCH_SORTS(SortKeys, SortPairs, false)
  INLINEBENCH_SORTS(SortKeysDescending, SortPairsDescending, true)
#undef INLINEBENCH_SEGMENT_TYPES
#undef INLINEBENCH_SEGMENTS
#undef INLINEBENCH_SEGMENT_NAMES

 private:
  template <class Arrays>
  static cudaError_t sort(INLINEBENCH_TEMP, std::size_t bytes, const Arrays& arrays, std::size_t num_items,
                          bool descending, int begin_bit, int end_bit, cudaStream_t, int line) {
    return INLINEBENCH_RUN("cub::DeviceRadixSort", ::inlinebench::small_storage + bytes,
                           arrays.sort(0, num_items, begin_bit, end_bit, descending));
  }
};

struct DeviceSegmentedRadixSort {
#define INLINEBENCH_SEGMENT_TYPES class Begin, class End
#define INLINEBENCH_SEGMENTS int num_items, int num_segments, Begin d_begin_offsets, End d_end_offsets
#define INLINEBENCH_SEGMENT_NAMES num_segments, d_begin_offsets, d_end_offsets
  INLINEBENCH_SORTS(SortKeys, SortPairs, false)
  INLINEBENCH_SORTS(SortKeysDescending, SortPairsDescending, true)
#undef INLINEBENCH_SEGMENT_TYPES
#undef INLINEBENCH_SEGMENTS
#undef INLINEBENCH_SEGMENT_NAMES

 private:
  template <class Arrays, class Begin, class End>
  static cudaError_t sort(INLINEBENCH_TEMP, std::size_t bytes, const Arrays& arrays, int num_segments, Begin begins,
                          End ends, bool descending, int begin_bit, int end_bit, cudaStream_t, int line) {
    return INLINEBENCH_RUN("cub::DeviceSegmentedRadixSort", ::inlinebench::small_storage + bytes,
                           for (int i = 0; i < num_segments; ++i) if (begins[i] < ends[i])
                               arrays.sort(begins[i], ends[i], begin_bit, end_bit, descending));
  }
};

#undef INLINEBENCH_SORTS
#undef INLINEBENCH_BITS
#undef INLINEBENCH_KEY_BITS

}  // namespace cub

#undef INLINEBENCH_RUN
#undef INLINEBENCH_TEMP
#undef INLINEBENCH_LINE
