// cublas_v2.h: matrix products, by ATen. Matrices are column-major, as in cuBLAS. Names that are not here are refused.
//
// Every operand is converted to the type in which cuBLAS computes, and the result is rounded once. The translator reads
// the supported names from this text, so names that macros make stand in comments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/stream.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasGemmAlgo_t {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
using cudaDataType = cudaDataType_t;
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};
using cublasHandle_t = cublasContext*;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
#define CUDA_ON_CPU_SETTING(NAME, T, FIELD)                                  \
  inline cublasStatus_t cublasSet##NAME(cublasHandle_t handle, T value) {    \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                       \
    return handle->FIELD = value, CUBLAS_STATUS_SUCCESS;                     \
  }                                                                          \
  inline cublasStatus_t cublasGet##NAME(cublasHandle_t handle, T* value) {   \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                       \
    return *value = handle->FIELD, CUBLAS_STATUS_SUCCESS;                    \
  }
CUDA_ON_CPU_SETTING(Stream, cudaStream_t, stream)            // cublasSetStream cublasGetStream
CUDA_ON_CPU_SETTING(MathMode, cublasMath_t, math)            // cublasSetMathMode cublasGetMathMode
CUDA_ON_CPU_SETTING(PointerMode, cublasPointerMode_t, pointers)  // cublasSetPointerMode cublasGetPointerMode
#undef CUDA_ON_CPU_SETTING
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, std::size_t) {
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
inline const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "an error of cuBLAS";
  }
}
inline const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

namespace cuda_on_cpu {

struct Operand {
  const void* data;
  cudaDataType type;
  std::int64_t ld;
  long long stride = 0;  // from one matrix of a batch to the next
  cublasOperation_t operation = CUBLAS_OP_N;
};

inline at::ScalarType scalar_type(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return at::kDouble;
    case CUDA_R_16F: return at::kHalf;
    case CUDA_R_16BF: return at::kBFloat16;
    default: return at::kFloat;
  }
}

// op(X), which has this number of rows and columns, of each matrix of the batch.
inline at::Tensor matrices(const Operand& x, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  const bool transposed = x.operation != CUBLAS_OP_N;
  const std::int64_t along_row = transposed ? 1 : x.ld, along_column = transposed ? x.ld : 1;
  return at::from_blob(const_cast<void*>(x.data), {batch, rows, columns}, {x.stride, along_column, along_row},
                       at::TensorOptions().dtype(scalar_type(x.type)));
}

inline bool misfits(const char* routine, int parameter, bool wrong) {
  if (wrong) std::fprintf(stderr, " ** On entry to %s parameter number %d had an illegal value\n", routine, parameter);
  return wrong;
}

// C = alpha * op(A) * op(B) + beta * C, for each of `batch` matrices. If beta is 0, C is not read.
inline cublasStatus_t gemm(cublasHandle_t handle, const char* routine, int m, int n, int k, double alpha, const Operand& a,
                           const Operand& b, double beta, const Operand& c, int batch = 1, bool doubles = false) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const int rows_of_a = a.operation == CUBLAS_OP_N ? m : k, rows_of_b = b.operation == CUBLAS_OP_N ? k : n;
  if (misfits(routine, 3, m < 0) || misfits(routine, 4, n < 0) || misfits(routine, 5, k < 0) || batch < 0 ||
      misfits(routine, 8, a.ld < std::max(1, rows_of_a)) || misfits(routine, 10, b.ld < std::max(1, rows_of_b)) ||
      misfits(routine, 13, c.ld < std::max(1, m)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  const at::ScalarType type = doubles ? at::kDouble : at::kFloat;
  at::Tensor product = alpha == 0 || k == 0
                           ? at::zeros({batch, m, n}, at::TensorOptions().dtype(type))
                           : at::matmul(matrices(a, batch, m, k).to(type), matrices(b, batch, k, n).to(type)).mul_(alpha);
  at::Tensor result = matrices(c, batch, m, n);
  if (beta != 0) product.add_(result.to(type), beta);
  result.copy_(product);
  return CUBLAS_STATUS_SUCCESS;
}

// Older code names the type of the numbers instead.
struct ComputeType {
  cublasComputeType_t type;
  ComputeType(cublasComputeType_t type) : type(type) {}
  ComputeType(cudaDataType data)
      : type(data == CUDA_R_64F ? CUBLAS_COMPUTE_64F : data == CUDA_R_16F ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F) {}
};
inline bool in_doubles(ComputeType compute) {
  return compute.type == CUBLAS_COMPUTE_64F || compute.type == CUBLAS_COMPUTE_64F_PEDANTIC;
}
// alpha and beta have the type of the computation.
inline double factor(const void* value, ComputeType compute) {
  if (in_doubles(compute)) return *static_cast<const double*>(value);
  if (compute.type == CUBLAS_COMPUTE_16F || compute.type == CUBLAS_COMPUTE_16F_PEDANTIC)
    return half_value(*static_cast<const std::uint16_t*>(value));
  return *static_cast<const float*>(value);
}
inline double factor(const __half* value) { return half_value(*reinterpret_cast<const std::uint16_t*>(value)); }
inline double factor(const float* value) { return *value; }
inline double factor(const double* value) { return *value; }

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_GEMM(NAME, T, TYPE)                                                                               \
  inline cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, \
                             int k, const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C,    \
                             int ldc) {                                                                               \
    using cuda_on_cpu::factor;                                                                                        \
    return cuda_on_cpu::gemm(handle, #NAME, m, n, k, factor(alpha), {A, TYPE, lda, 0, transa},                        \
                             {B, TYPE, ldb, 0, transb}, factor(beta), {C, TYPE, ldc}, 1, TYPE == CUDA_R_64F);         \
  }                                                                                                                   \
  inline cublasStatus_t NAME##StridedBatched(                                                                         \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const T* alpha, \
      const T* A, int lda, long long strideA, const T* B, int ldb, long long strideB, const T* beta, T* C, int ldc,   \
      long long strideC, int batch) {                                                                                 \
    using cuda_on_cpu::factor;                                                                                        \
    return cuda_on_cpu::gemm(handle, #NAME, m, n, k, factor(alpha), {A, TYPE, lda, strideA, transa},                  \
                             {B, TYPE, ldb, strideB, transb}, factor(beta), {C, TYPE, ldc, strideC}, batch,           \
                             TYPE == CUDA_R_64F);                                                                     \
  }
CUDA_ON_CPU_GEMM(cublasSgemm, float, CUDA_R_32F)   // cublasSgemmStridedBatched
CUDA_ON_CPU_GEMM(cublasDgemm, double, CUDA_R_64F)  // cublasDgemmStridedBatched
CUDA_ON_CPU_GEMM(cublasHgemm, __half, CUDA_R_16F)  // cublasHgemmStridedBatched
#undef CUDA_ON_CPU_GEMM

inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* A, cudaDataType Atype, int lda, long long strideA, const void* B, cudaDataType Btype, int ldb,
    long long strideB, const void* beta, void* C, cudaDataType Ctype, int ldc, long long strideC, int batch,
    cuda_on_cpu::ComputeType computeType, cublasGemmAlgo_t) {
  using cuda_on_cpu::factor;
  return cuda_on_cpu::gemm(handle, "GEMM", m, n, k, factor(alpha, computeType), {A, Atype, lda, strideA, transa},
                           {B, Btype, ldb, strideB, transb}, factor(beta, computeType), {C, Ctype, ldc, strideC}, batch,
                           cuda_on_cpu::in_doubles(computeType));
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                                   int k, const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                                   cudaDataType Btype, int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc,
                                   cuda_on_cpu::ComputeType computeType, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype, ldb, 0, beta, C,
                                    Ctype, ldc, 0, 1, computeType, algorithm);
}

// A += alpha * x * y^T
inline cublasStatus_t cublasSger(cublasHandle_t handle, int m, int n, const float* alpha, const float* x, int incx,
                                 const float* y, int incy, float* A, int lda) {
  if (incx < 1 || incy < 1) return CUBLAS_STATUS_INVALID_VALUE;
  return cuda_on_cpu::gemm(handle, "SGER", m, n, 1, *alpha, {x, CUDA_R_32F, incx, 0, CUBLAS_OP_T},
                           {y, CUDA_R_32F, incy}, 1.0, {A, CUDA_R_32F, lda});
}

namespace at::cuda {
inline cublasHandle_t getCurrentCUDABlasHandle() {
  static cublasContext context;
  return &context;
}
}  // namespace at::cuda
