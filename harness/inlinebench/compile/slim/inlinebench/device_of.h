// Torch's own header, which one beside this hides.
#pragma once

#include_next <ATen/DeviceGuard.h>
