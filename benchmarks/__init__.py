"""Measured comparisons on equal work with equal results; no test asserts a time."""
