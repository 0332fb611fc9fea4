// Replaces torch's header, without the C++ front end (nn, optim, data), which kernels do not use.
#pragma once

#include <torch/types.h>
#include <torch/version.h>
