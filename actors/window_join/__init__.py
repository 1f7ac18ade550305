"""Systems whose PEs each store a share of the whole window in one index and probe it."""
