// Replaces torch's header: tensors, and bindings of functions on tensors to Python.
#pragma once

#include <torch/all.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
