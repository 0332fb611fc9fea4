// Replaces CUDA's header, which is a fifth of what nvcc reads of torch's tensors. c10's complex numbers convert to
// thrust's and call its functions, but only in templates. Everything here is declared but not defined, so a source that
// uses it fails to compile, and is built again with torch's headers and CUDA's own.
#pragma once

#include <cfloat>  // CUDA's header includes it, and sources use FLT_MAX without including it themselves

namespace thrust {

template <typename T>
struct complex;

template <typename T> __host__ __device__ T abs(const complex<T>&);
template <typename T> __host__ __device__ T arg(const complex<T>&);
template <typename T> __host__ __device__ T norm(const complex<T>&);
template <typename T> __host__ __device__ complex<T> conj(const complex<T>&);
template <typename T> __host__ __device__ complex<T> proj(const complex<T>&);
template <typename T> __host__ __device__ complex<T> polar(const T&, const T& = T());

template <typename T> __host__ __device__ complex<T> pow(const complex<T>&, const complex<T>&);
template <typename T> __host__ __device__ complex<T> pow(const complex<T>&, const T&);
template <typename T> __host__ __device__ complex<T> pow(const T&, const complex<T>&);
template <typename T> __host__ __device__ complex<T> exp(const complex<T>&);
template <typename T> __host__ __device__ complex<T> log(const complex<T>&);
template <typename T> __host__ __device__ complex<T> log10(const complex<T>&);
template <typename T> __host__ __device__ complex<T> sqrt(const complex<T>&);

template <typename T> __host__ __device__ complex<T> sin(const complex<T>&);
template <typename T> __host__ __device__ complex<T> cos(const complex<T>&);
template <typename T> __host__ __device__ complex<T> tan(const complex<T>&);
template <typename T> __host__ __device__ complex<T> asin(const complex<T>&);
template <typename T> __host__ __device__ complex<T> acos(const complex<T>&);
template <typename T> __host__ __device__ complex<T> atan(const complex<T>&);
template <typename T> __host__ __device__ complex<T> sinh(const complex<T>&);
template <typename T> __host__ __device__ complex<T> cosh(const complex<T>&);
template <typename T> __host__ __device__ complex<T> tanh(const complex<T>&);
template <typename T> __host__ __device__ complex<T> asinh(const complex<T>&);
template <typename T> __host__ __device__ complex<T> acosh(const complex<T>&);
template <typename T> __host__ __device__ complex<T> atanh(const complex<T>&);

}  // namespace thrust
