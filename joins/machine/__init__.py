"""What kernels need of the machine below numba: instructions, atomic operations, memory."""
