// Torch's factories that know `requires_grad`, and what they need.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <inlinebench/context.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
