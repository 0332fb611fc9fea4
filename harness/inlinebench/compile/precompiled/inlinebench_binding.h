// What the C++ file that `load_inline` makes begins with.
#include <torch/extension.h>
