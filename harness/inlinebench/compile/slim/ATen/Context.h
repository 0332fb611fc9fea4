// Replaces torch's header: the headers of operators include it, but use nothing of it.
// Sources with the word `globalContext` get torch's header, see slim/__init__.py.
#pragma once

#include <c10/core/DeviceType.h>
