"""Records of results and builds, options, and user-facing errors. Does not import torch."""
