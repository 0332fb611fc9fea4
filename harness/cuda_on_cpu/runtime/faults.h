// Signals raised by a kernel (bad addresses, integer division by zero) become a message that names it.
#pragma once

namespace cuda_on_cpu {

// Installs the handlers, once a process.
void install_fault_handlers();

}  // namespace cuda_on_cpu
