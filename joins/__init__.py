"""Join algorithms on columnar batches: no clock, no process, and no file but of compiled code."""
