// Jumps of cuRAND's generator XORWOW.
//
// A draw changes the 160 bits of its register by a linear map over GF(2), so n draws are a power of its matrix, and a
// jump takes one product of a matrix and the register for each bit that is set in n.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cuda_on_cpu/curand_generators.h"

namespace cuda_on_cpu {

namespace {

using Register = std::array<unsigned, 5>;
using Columns = std::array<Register, 160>;    // what becomes of each bit of the register
using Matrix = std::array<Register, 40 * 16>;  // and of each value of each 4 bits, which makes products fast

constexpr int log_of_sequence = 67;  // 2^67 draws of each sequence
constexpr int powers = log_of_sequence + 64;

void add(Register& sum, const Register& other) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] ^= other[i];
}

Register product(const Matrix& matrix, const Register& vector) {
  Register sum{};
  const Register* images = matrix.data();
  for (unsigned word : vector)
    for (int shift = 0; shift < 32; shift += 4, images += 16) add(sum, images[word >> shift & 15]);
  return sum;
}

Matrix matrix_of(const Columns& columns) {
  Matrix matrix;
  for (unsigned i = 0; i < matrix.size(); ++i) {
    unsigned value = i % 16;
    matrix[i] = {};
    if (!value) continue;
    // The lowest bit of the value, and the others, which came before.
    matrix[i] = columns[i / 16 * 4 + static_cast<unsigned>(__builtin_ctz(value))];
    add(matrix[i], matrix[i - value + (value & (value - 1))]);
  }
  return matrix;
}

Columns one_draw() {
  Columns columns;
  for (unsigned bit = 0; bit < columns.size(); ++bit) {
    unsigned v[5] = {};
    v[bit / 32] = 1u << bit % 32;
    step_xorwow(v);
    std::copy(v, v + 5, columns[bit].begin());
  }
  return columns;
}

// The matrices of 1, 2, 4, 8, ... draws: each is the square of the one before.
std::vector<Matrix> powers_of_two() {
  std::vector<Matrix> made;
  Columns columns = one_draw();
  while (made.size() < powers) {
    made.push_back(matrix_of(columns));
    for (Register& column : columns) column = product(made.back(), column);
  }
  return made;
}

// Moves a register by count * 2^log_of_unit draws.
void advance(Register& vector, unsigned long long count, std::size_t log_of_unit) {
  static const std::vector<Matrix> matrices = powers_of_two();
  for (; count; count >>= 1, ++log_of_unit)
    if (count & 1) vector = product(matrices[log_of_unit], vector);
}

}  // namespace

void advance_xorwow(unsigned (&v)[5], unsigned long long sequences, unsigned long long draws) {
  Register vector;
  std::copy(v, v + 5, vector.begin());
  if (sequences) advance(vector, sequences, log_of_sequence);
  if (draws) advance(vector, draws, 0);
  std::copy(vector.begin(), vector.end(), v);
}

}  // namespace cuda_on_cpu
