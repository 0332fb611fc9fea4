import torch.nn as nn
from torch.utils.cpp_extension import load_inline

axpy_source = """
torch::Tensor axpy(torch::Tensor x, torch::Tensor y) {
    auto out = torch::empty_like(x);
    const float* a = x.data_ptr<float>();
    const float* b = y.data_ptr<float>();
    float* c = out.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) c[i] = 2 * a[i] + b[i];
    return out;
}
"""

# Compile the inline code
axpy = load_inline(
    name="axpy",
    cpp_sources=axpy_source,
    functions=["axpy"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.axpy = axpy

    def forward(self, x, y):
        return self.axpy.axpy(x, y)
