// The start of the C++ file that `load_inline` makes.
#include <torch/extension.h>
