"""Systems whose PEs each keep a share of the whole window in one index and probe it."""
