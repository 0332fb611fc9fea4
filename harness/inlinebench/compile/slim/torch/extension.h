// Instead of torch's own: tensors, and the bindings of functions on them to Python.
#pragma once

#include <torch/all.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
