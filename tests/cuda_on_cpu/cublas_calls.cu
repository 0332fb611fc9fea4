// cuBLAS's matrix products with all their arguments, for test_cublas.py. Tensors are only memory here.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/EmptyTensor.h>
#include <cublas_v2.h>
#include <torch/extension.h>

static cublasOperation_t operation(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

int sgemm(bool ta, bool tb, int m, int n, int k, double alpha, torch::Tensor a, int lda, torch::Tensor b, int ldb,
          double beta, torch::Tensor c, int ldc) {
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return -1;
  cublasSetStream(handle, at::cuda::getCurrentCUDAStream());
  cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);
  const float alpha_f = alpha, beta_f = beta;
  cublasStatus_t status = cublasSgemm(handle, operation(ta), operation(tb), m, n, k, &alpha_f, a.data_ptr<float>(), lda,
                                      b.data_ptr<float>(), ldb, &beta_f, c.data_ptr<float>(), ldc);
  cublasDestroy(handle);
  return status;
}

int dgemm(bool ta, bool tb, int m, int n, int k, double alpha, torch::Tensor a, int lda, torch::Tensor b, int ldb,
          double beta, torch::Tensor c, int ldc) {
  return cublasDgemm(at::cuda::getCurrentCUDABlasHandle(), operation(ta), operation(tb), m, n, k, &alpha,
                     a.data_ptr<double>(), lda, b.data_ptr<double>(), ldb, &beta, c.data_ptr<double>(), ldc);
}

int batched(bool ta, bool tb, int m, int n, int k, double alpha, torch::Tensor a, int lda, torch::Tensor b, int ldb,
            double beta, torch::Tensor c, int ldc, int batch, int64_t sa, int64_t sb, int64_t sc) {
  const float alpha_f = alpha, beta_f = beta;
  return cublasSgemmStridedBatched(at::cuda::getCurrentCUDABlasHandle(), operation(ta), operation(tb), m, n, k, &alpha_f,
                                   a.data_ptr<float>(), lda, sa, b.data_ptr<float>(), ldb, sb, &beta_f,
                                   c.data_ptr<float>(), ldc, sc, batch);
}

static cudaDataType_t type_of(const torch::Tensor& x) {
  return x.scalar_type() == torch::kHalf ? CUDA_R_16F : x.scalar_type() == torch::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

int mixed(bool ta, bool tb, int m, int n, int k, double alpha, torch::Tensor a, int lda, torch::Tensor b, int ldb,
          double beta, torch::Tensor c, int ldc, int batch, int64_t sa, int64_t sb, int64_t sc) {
  auto handle = at::cuda::getCurrentCUDABlasHandle();
  const float alpha_f = alpha, beta_f = beta;
  if (batch == 0)
    return cublasGemmEx(handle, operation(ta), operation(tb), m, n, k, &alpha_f, a.data_ptr(), type_of(a), lda,
                        b.data_ptr(), type_of(b), ldb, &beta_f, c.data_ptr(), type_of(c), ldc, CUDA_R_32F,
                        CUBLAS_GEMM_DEFAULT);
  return cublasGemmStridedBatchedEx(handle, operation(ta), operation(tb), m, n, k, &alpha_f, a.data_ptr(), type_of(a), lda,
                                    sa, b.data_ptr(), type_of(b), ldb, sb, &beta_f, c.data_ptr(), type_of(c), ldc, sc,
                                    batch, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT_TENSOR_OP);
}

torch::Tensor outer(torch::Tensor x, torch::Tensor y, double alpha) {
  torch::Tensor out(at::detail::empty_cuda({y.size(0), x.size(0)}, at::kFloat, x.device(), std::nullopt));
  out.fill_(1);
  const float alpha_f = alpha;
  int m = x.size(0), n = y.size(0);
  cublasSger(at::cuda::getCurrentCUDABlasHandle(), m, n, &alpha_f, x.data_ptr<float>(), x.stride(0), y.data_ptr<float>(),
             y.stride(0), out.data_ptr<float>(), m);
  return out;
}

int without_handle() {
  float one = 1;
  return cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &one, 1, &one, 1, &one, &one, 1);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sgemm", &sgemm);
  m.def("dgemm", &dgemm);
  m.def("batched", &batched);
  m.def("mixed", &mixed);
  m.def("outer", &outer);
  m.def("without_handle", &without_handle);
}
