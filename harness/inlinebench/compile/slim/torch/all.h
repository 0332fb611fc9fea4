// Instead of torch's own: without the C++ front end (nn, optim, data), which kernels don't use.
#pragma once

#include <torch/types.h>
#include <torch/version.h>
