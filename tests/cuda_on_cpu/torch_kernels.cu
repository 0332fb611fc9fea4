// What solutions write around their kernels: checks, options, dispatch, streams, guards.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <torch/extension.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)

template <typename scalar_t>
__global__ void scale_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ out, float factor, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<scalar_t>(static_cast<float>(__ldg(&x[i])) * factor);
}

torch::Tensor scale(torch::Tensor x, double factor) {
  CHECK_INPUT(x);
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));
  auto out = torch::empty_like(x, x.options().device(torch::kCUDA));
  TORCH_CHECK(x.device().type() == torch::kCUDA && x.device() == out.device(), "devices differ");
  TORCH_CHECK(x.device().type() != torch::kCPU && !x.is_cpu());
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "scale", ([&] {
    scale_kernel<scalar_t><<<(x.numel() + 255) / 256, 256, 0, stream>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), static_cast<float>(factor), x.numel());
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

__global__ void accessor_kernel(const torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x,
                                torch::PackedTensorAccessor32<float, 1, torch::RestrictPtrTraits> out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= x.size(0)) return;
  float sum = 0.0f;
  for (int c = 0; c < x.size(1); ++c) sum += x[row][c];
  out[row] = sum;
}

torch::Tensor row_sums(torch::Tensor x) {
  c10::cuda::CUDAGuard guard(x.device());
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(torch::Device(torch::kCUDA, 0));
  auto out = torch::zeros({x.size(0)}, options);
  const dim3 grid((x.size(0) + 31) / 32);
  accessor_kernel<<<grid, 32, 0, c10::cuda::getCurrentCUDAStream().stream()>>>(
      x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), out.packed_accessor32<float, 1, torch::RestrictPtrTraits>());
  AT_CUDA_CHECK(cudaGetLastError());
  AT_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getDefaultCUDAStream()));
  return out;
}

__global__ void half_kernel(const __half* x, __half* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __hadd(x[i], __half(at::Half(1.0f)));
}

torch::Tensor add_one(torch::Tensor x) {
  auto out = torch::empty({x.numel()}, x.options());
  half_kernel<<<1, 128>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), (__half*)out.data_ptr<at::Half>(), x.numel());
  return out;
}

__global__ void overrun_kernel(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 1.0f;
}

torch::Tensor overrun(int64_t n) {
  auto x = torch::zeros({n}, torch::device(torch::kCUDA).dtype(torch::kFloat));
  overrun_kernel<<<n / 64 + 1, 64>>>(x.data_ptr<float>(), n);
  return x;
}

__global__ void diverge_kernel(float* x) {
  if (threadIdx.x < 7) {
    __syncthreads();
    x[threadIdx.x] = 1.0f;
  }
  __syncthreads();
}

torch::Tensor diverge(torch::Tensor x) {
  diverge_kernel<<<3, 64>>>(x.data_ptr<float>());
  return x;
}

torch::Tensor uninitialised(int64_t n) { return torch::empty({n}, torch::kCUDA); }

torch::Tensor bad_launch(torch::Tensor x) {
  overrun_kernel<<<1, 4096>>>(x.data_ptr<float>(), 0);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale", &scale);
  m.def("row_sums", &row_sums);
  m.def("add_one", &add_one);
  m.def("overrun", &overrun);
  m.def("diverge", &diverge);
  m.def("uninitialised", &uninitialised);
  m.def("bad_launch", &bad_launch);
}
