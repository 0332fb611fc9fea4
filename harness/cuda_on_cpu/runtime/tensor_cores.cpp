// Products of matrices as the tensor cores of Hopper compute them.
//
// NVIDIA does not document their rounding. It was measured: Fasi et al., "Numerical behavior of NVIDIA tensor cores"
// (2021, doi 10.7717/peerj-cs.330), for the generations before, and for Hopper Khattak and Mikaitis, "Accurate Models of
// NVIDIA Tensor Cores" (2025, arXiv 2512.07004), and Xie et al., "MMA-Sim" (2025, arXiv 2511.10909). Products are exact.
// All products of one sum and the addend are cut off at the same bit, 25 below the largest exponent among them, and added
// exactly; the sum is cut off to float, or rounded to nearest half.
#include "cuda_on_cpu/tensor_cores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cuda_on_cpu/refuse.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/small_float.h"

namespace cuda_on_cpu {

namespace {

constexpr int kept_bits = 25;
constexpr int least_exponent = -133;  // that the hardware aligns to
constexpr int no_exponent = -100000;  // of a zero
constexpr int largest_exponent = 1023;  // of a finite number
constexpr int most_m = 16, n_columns = 8, most_k = 32;

template <class T>
T element(const void* registers, int index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(registers) + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

// A number of any of the formats that is one of a lane's elements.
double number(Format format, const void* registers, int index) {
  switch (format) {
    case Format::f16: return half_value(element<std::uint16_t>(registers, index));
    case Format::bf16: return bfloat16_value(element<std::uint16_t>(registers, index));
    case Format::tf32: return bits_as<float>(element<std::uint32_t>(registers, index) & ~0x1fffu);
    case Format::f32: return element<float>(registers, index);
    case Format::f64: return element<double>(registers, index);
    case Format::s8: return element<std::int8_t>(registers, index);
    case Format::u8: return element<std::uint8_t>(registers, index);
    case Format::s32: return element<std::int32_t>(registers, index);
  }
  return 0;
}

// The exponent of a number as its format has it: a subnormal has the one of the smallest normal number.
int exponent(Format format, double x) {
  if (x == 0) return no_exponent;
  const int least = format == Format::f16 ? -14 : -126;
  return std::max(static_cast<int>(bits_as<std::uint64_t>(x) >> 52 & 0x7ff) - 1023, least);
}

double power_of_two(int exponent) { return bits_as<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

struct Place {
  int row, column;
};

// Where a lane's elements lie. A register holds 2^`side` elements side by side; registers go down by 8 rows first, then
// on. With shifts instead of divisions, because this is computed for every element of every product.
int side_of(Format format) {
  if (format == Format::s8 || format == Format::u8) return 2;
  return format == Format::f16 || format == Format::bf16;
}
Place place_in_a(int side, int m, int lane, int index) {
  const int reg = index >> side, tall = m == 16;
  return {lane / 4 + (reg & tall) * 8, (lane % 4 << side) + (index & ((1 << side) - 1)) + (reg >> tall << (side + 2))};
}
Place place_in_b(int side, int lane, int index) {
  return {(lane % 4 << side) + (index & ((1 << side) - 1)) + (index >> side << (side + 2)), lane / 4};
}
Place place_in_c(int lane, int index) { return {lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2}; }

struct Matrices {
  double a[most_m][most_k], b[most_k][n_columns], c[most_m][n_columns];
  int a_exponent[most_m][most_k], b_exponent[most_k][n_columns], c_exponent[most_m][n_columns];
  bool finite = true;  // whether all numbers are, of a product of floats
};

double sum_in_order(const MatrixProduct& shape, const Matrices& of, int m, int n) {
  double sum = of.c[m][n];
  for (int k = 0; k < shape.k; ++k) sum += of.a[m][k] * of.b[k][n];
  return sum;
}

// Cut off, a term has 27 bits: a product of two numbers from 1 to 2 can have one more than its exponent says. What does
// not fit belongs to a sum that is not finite, which is computed otherwise.
double cut_off(double term) { return static_cast<std::int32_t>(term); }

// A row of a product of floats, as doubles that the result's format holds after the last rounding. Compilers make
// vectors of the loops over n.
void add_up_row(const MatrixProduct& shape, const Matrices& of, int m, double (&sums)[n_columns]) {
  int largest[n_columns];
  double scales[n_columns];
  std::copy_n(of.c_exponent[m], n_columns, largest);
  for (int k = 0; k < shape.k; ++k)
    for (int n = 0; n < n_columns; ++n) largest[n] = std::max(largest[n], of.a_exponent[m][k] + of.b_exponent[k][n]);
  for (int n = 0; n < n_columns; ++n) {
    scales[n] = power_of_two(kept_bits - std::max(largest[n], least_exponent));
    sums[n] = cut_off(of.c[m][n] * scales[n]);
  }
  for (int k = 0; k < shape.k; ++k)
    for (int n = 0; n < n_columns; ++n) sums[n] += cut_off(of.a[m][k] * of.b[k][n] * scales[n]);
  for (int n = 0; n < n_columns; ++n) {
    sums[n] /= scales[n];
    const bool zero = largest[n] < no_exponent / 2;
    if (of.finite && !zero) continue;
    const double sum = sum_in_order(shape, of, m, n);
    if (zero || !std::isfinite(sum)) sums[n] = sum;  // with the sign of a zero
  }
}

void put_float(const MatrixProduct& product, int index, double sum) {
  if (product.d_format == Format::f16) {
    const std::uint16_t bits = half_bits(round_to_odd(sum));
    std::memcpy(static_cast<char*>(product.d) + index * 2, &bits, sizeof bits);
    return;
  }
  auto value = static_cast<float>(sum);
  if (std::fabs(static_cast<double>(value)) > std::fabs(sum)) value = std::nextafter(value, 0.0f);
  if (sum != sum) value = bits_as<float>(0x7fffffffu);
  std::memcpy(static_cast<char*>(product.d) + index * 4, &value, sizeof value);
}

void put_double(const MatrixProduct& product, const Matrices& of, int index, Place at) {
  double sum = of.c[at.row][at.column];
  for (int k = 0; k < product.k; ++k) sum = std::fma(of.a[at.row][k], of.b[k][at.column], sum);
  std::memcpy(static_cast<char*>(product.d) + index * 8, &sum, sizeof sum);
}

void put_integer(const MatrixProduct& product, const Matrices& of, int index, Place at) {
  double sum = of.c[at.row][at.column];
  for (int k = 0; k < product.k; ++k) sum += of.a[at.row][k] * of.b[k][at.column];
  auto whole = static_cast<std::int64_t>(sum);
  using limits = std::numeric_limits<std::int32_t>;
  if (product.saturate) whole = std::clamp<std::int64_t>(whole, limits::min(), limits::max());
  const auto value = static_cast<std::int32_t>(whole);
  std::memcpy(static_cast<char*>(product.d) + index * 4, &value, sizeof value);
}

struct Post {
  const MatrixProduct* product;
  int line;
};

void gather(const MatrixProduct& one, void* const* posts, Matrices& all) {
  const int a_side = side_of(one.a_format), b_side = side_of(one.b_format);
  const bool floats = one.d_format == Format::f32 || one.d_format == Format::f16;
  const auto keep = [&](Format format, const void* registers, int index, double& value, int& its_exponent) {
    value = number(format, registers, index);
    if (!floats) return;
    its_exponent = exponent(format, value);
    all.finite &= its_exponent <= largest_exponent;
  };
  for (int lane = 0; lane < 32; ++lane) {
    const MatrixProduct& mine = *static_cast<Post*>(posts[lane])->product;
    for (int index = 0; index < one.m * one.k / 32; ++index) {
      const Place at = place_in_a(a_side, one.m, lane, index);
      keep(one.a_format, mine.a, index, all.a[at.row][at.column], all.a_exponent[at.row][at.column]);
    }
    for (int index = 0; index < one.n * one.k / 32; ++index) {
      const Place at = place_in_b(b_side, lane, index);
      keep(one.b_format, mine.b, index, all.b[at.row][at.column], all.b_exponent[at.row][at.column]);
    }
    for (int index = 0; index < one.m * one.n / 32; ++index) {
      const Place at = place_in_c(lane, index);
      keep(one.c_format, mine.c, index, all.c[at.row][at.column], all.c_exponent[at.row][at.column]);
    }
  }
}

void run(unsigned lanes, void* const* posts) {
  const Post& first = *static_cast<Post*>(posts[__builtin_ctz(lanes)]);
  if (lanes != 0xffffffffu)
    refuse("lanes are missing from an operation of the whole warp", "mma.sync", first.line);
  for (int lane = 1; lane < 32; ++lane)
    if (static_cast<Post*>(posts[lane])->line != first.line)
      refuse("divergence, lanes of a warp call it from two lines", "mma.sync", first.line);
  const MatrixProduct& one = *first.product;
  Matrices all;
  gather(one, posts, all);
  double sums[most_m][n_columns];
  if (one.d_format == Format::f32 || one.d_format == Format::f16)
    for (int m = 0; m < one.m; ++m) add_up_row(one, all, m, sums[m]);
  for (int lane = 0; lane < 32; ++lane) {
    const MatrixProduct& mine = *static_cast<Post*>(posts[lane])->product;
    for (int index = 0; index < one.m * one.n / 32; ++index) {
      const Place at = place_in_c(lane, index);
      if (one.d_format == Format::f64) put_double(mine, all, index, at);
      else if (one.d_format == Format::s32) put_integer(mine, all, index, at);
      else put_float(mine, index, sums[at.row][at.column]);
    }
  }
}

}  // namespace

void multiply_matrices(const MatrixProduct& product, int line) {
  Post post{&product, line};
  warp_collective(0xffffffffu, &post, &run, "mma.sync", line);
}

}  // namespace cuda_on_cpu
