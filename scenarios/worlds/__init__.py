"""Whole small runs as data, drawn from a seed, run in memory, shrunk and replayed."""
