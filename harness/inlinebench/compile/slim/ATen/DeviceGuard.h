// Replaces torch's header, whose `device_of` for lists includes all of TorchScript's types, half of a build's time.
// Sources with the word `device_of` get torch's header, see slim/__init__.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
