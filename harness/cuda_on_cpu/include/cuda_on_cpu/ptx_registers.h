// Registers of inline PTX: unsigned integers that hold bits, and bool for predicates.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/integers.h"

namespace cuda_on_cpu::ptx {

template <class T>
using BitsOf = typename Word<sizeof(T)>::type;

template <class T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// A register's bits as a type of PTX. Integers may be narrower than the register.
template <class T, class Register>
inline T as(Register bits) {
  static_assert(!std::is_same_v<Register, bool>, "a predicate is not a number");
  static_assert(is_integer<T> ? sizeof(T) <= sizeof(Register) : sizeof(T) == sizeof(Register),
                "an operand of the asm statement has another size than the PTX instruction's type");
  return bits_as<T>(static_cast<BitsOf<T>>(bits));
}

// Writes a register. A narrower integer is extended by its sign, or by zeros.
template <class Register, class T>
inline void put(Register& to, T value) {
  if constexpr (std::is_same_v<Register, bool> || std::is_same_v<T, bool>) {
    static_assert(std::is_same_v<Register, T>, "a predicate is not a number");
    to = value;
  } else if constexpr (is_integer<T>) {
    static_assert(sizeof(T) <= sizeof(Register),
                  "an operand of the asm statement has another size than the PTX instruction's type");
    to = static_cast<Register>(value);
  } else {
    static_assert(sizeof(T) == sizeof(Register),
                  "an operand of the asm statement has another size than the PTX instruction's type");
    to = bits_as<Register>(value);
  }
}

// What an output holds that no instruction has written: NaN as a float, far out of range as an index.
template <class Register>
constexpr Register undefined() { return static_cast<Register>(0x7fff7fff7fff7fffull); }

// An input of the asm statement, as the register of its constraint. T is float or double for "f" and "d".
template <class T, class From>
inline BitsOf<T> input(From value) {
  static_assert(std::is_scalar_v<From>, "an operand of an asm statement must have a scalar type");
  if constexpr (std::is_floating_point_v<T>) {
    static_assert(std::is_same_v<From, T>, "the type of the operand does not match its constraint");
    return bits_as<BitsOf<T>>(value);
  } else if constexpr (std::is_pointer_v<From> || std::is_null_pointer_v<From>) {
    static_assert(sizeof(T) == sizeof(void*), "the size of the operand does not match its constraint");
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    static_assert(!std::is_floating_point_v<From> && sizeof(From) <= sizeof(T),
                  "the type of the operand does not match its constraint");
    return static_cast<T>(value);
  }
}

template <class To, class Register>
inline void output(To& to, Register bits) {
  static_assert(std::is_scalar_v<To> && sizeof(To) == sizeof(Register),
                "the type of the operand does not match its constraint");
  to = bits_as<std::remove_cv_t<To>>(bits);
}

}  // namespace cuda_on_cpu::ptx
