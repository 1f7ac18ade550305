"""Distributed stream joins with semijoins (Tran and Lee, 2010): sites that ship batches."""
