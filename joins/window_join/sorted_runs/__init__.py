"""The window join that takes a batch at a time."""
