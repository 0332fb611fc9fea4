"""What crosses the trust boundary between judge and candidate: JSON frames, and tensor bytes in shared buffers."""
