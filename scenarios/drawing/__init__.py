"""Drawings of a topology: laid out, painted, written to a file."""
