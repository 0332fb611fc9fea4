"""Communication between judge and candidate: JSON frames, and tensors in shared buffers."""
