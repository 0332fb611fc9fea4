"""The judge: the process that owns the device, the inputs, the reference, the clock and the verdict."""
