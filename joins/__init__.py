"""Join algorithms on columnar batches: no clock, no process, and no file but of compiled code.

In a record the text below a field is about it, and about those right above it that have none.
"""
