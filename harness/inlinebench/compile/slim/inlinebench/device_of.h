// Torch's header, which the slim header of the same name hides.
#pragma once

#include_next <ATen/DeviceGuard.h>
