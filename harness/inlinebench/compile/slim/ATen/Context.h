// Instead of torch's own: the headers of operators include it and need nothing of it.
// A source that says `globalContext` gets torch's own, see slim/__init__.py.
#pragma once

#include <c10/core/DeviceType.h>
