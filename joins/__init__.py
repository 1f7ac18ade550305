"""Join algorithms on columnar batches: numpy and numba only; no clock, no process, no I/O."""
