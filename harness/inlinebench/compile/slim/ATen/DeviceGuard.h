// Instead of torch's own, whose `device_of` for lists brings all of TorchScript's types, half of the time of a build.
// A source that says `device_of` gets torch's own, see slim/__init__.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
