// The types __half and __half2, and __nv_bfloat16 and __nv_bfloat162. Included twice, by half.h and bfloat16.h, with
// - SCALAR, PAIR, SCALAR_RAW, PAIR_RAW: the names of the types;
// - ENCODE, DECODE: the functions from float to bits and back;
// - OTHER: the other of the two formats;
// - TORCHS, EXPLICIT: torch's type of this format, and `explicit` if the conversion from it is;
// - CONVERTS: 1 if it converts implicitly to and from C++'s numbers. torch's flags for nvcc switch that off.
//
// The conversions are CUDA's and torch's own, so that an expression compiles here if nvcc compiles it.

struct alignas(2) SCALAR_RAW {
  unsigned short x;
};
struct alignas(4) PAIR_RAW {
  unsigned short x, y;
};

struct alignas(2) SCALAR {
  unsigned short bits;

  SCALAR() = default;
  static constexpr SCALAR from_bits(unsigned short bits) { return SCALAR(SCALAR_RAW{bits}); }
  static SCALAR from_float(float value) { return from_bits(cuda_on_cpu::ENCODE(value)); }
  static SCALAR from_double(double value) { return from_float(cuda_on_cpu::round_to_odd(value)); }
  float to_float() const { return cuda_on_cpu::DECODE(bits); }

  constexpr SCALAR(const SCALAR_RAW& raw) : bits(raw.x) {}
  constexpr operator SCALAR_RAW() const { return {bits}; }

  template <class T, std::enable_if_t<std::is_same_v<T, TORCHS>, int> = 0>
  EXPLICIT SCALAR(const T& value) : bits(value.x) {}
  template <class T, std::enable_if_t<std::is_same_v<T, TORCHS>, int> = 0>
  operator T() const { return T(bits, T::from_bits()); }

#if CONVERTS
  SCALAR(float value) : SCALAR(from_float(value)) {}
  SCALAR(double value) : SCALAR(from_double(value)) {}
  template <class T, std::enable_if_t<std::is_same_v<T, OTHER>, int> = 0>
  explicit SCALAR(const T& value) : SCALAR(value.to_float()) {}
  SCALAR& operator=(float value) { return *this = SCALAR(value); }
  SCALAR& operator=(double value) { return *this = SCALAR(value); }
#define CUDA_ON_CPU_FROM(T)                                \
  SCALAR(T value) : SCALAR(static_cast<double>(value)) {}  \
  SCALAR& operator=(T value) { return *this = SCALAR(value); }
  CUDA_ON_CPU_FROM(short)
  CUDA_ON_CPU_FROM(unsigned short)
  CUDA_ON_CPU_FROM(int)
  CUDA_ON_CPU_FROM(unsigned)
  CUDA_ON_CPU_FROM(long long)
  CUDA_ON_CPU_FROM(unsigned long long)
#undef CUDA_ON_CPU_FROM
  SCALAR(long value) : SCALAR(static_cast<double>(value)) {}
  SCALAR(unsigned long value) : SCALAR(static_cast<double>(value)) {}
  operator float() const { return to_float(); }
#define CUDA_ON_CPU_TO(T) \
  operator T() const { return cuda_on_cpu::saturate<T>(to_float()); }
  CUDA_ON_CPU_TO(signed char)
  CUDA_ON_CPU_TO(unsigned char)
  CUDA_ON_CPU_TO(char)
  CUDA_ON_CPU_TO(short)
  CUDA_ON_CPU_TO(unsigned short)
  CUDA_ON_CPU_TO(int)
  CUDA_ON_CPU_TO(unsigned)
  CUDA_ON_CPU_TO(long)
  CUDA_ON_CPU_TO(unsigned long)
  CUDA_ON_CPU_TO(long long)
  CUDA_ON_CPU_TO(unsigned long long)
#undef CUDA_ON_CPU_TO
  constexpr operator bool() const { return (bits & 0x7fff) != 0; }
#endif
};

struct alignas(4) PAIR {
  SCALAR x, y;

  PAIR() = default;
  constexpr PAIR(const SCALAR& x, const SCALAR& y) : x(x), y(y) {}
  constexpr PAIR(const PAIR_RAW& raw) : x(SCALAR::from_bits(raw.x)), y(SCALAR::from_bits(raw.y)) {}
  constexpr operator PAIR_RAW() const { return {x.bits, y.bits}; }
  static PAIR from_floats(float x, float y) { return {SCALAR::from_float(x), SCALAR::from_float(y)}; }
};
