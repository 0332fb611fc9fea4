// Torch's factories that support `requires_grad`, and the headers that they need.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <inlinebench/context.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
