"""Streams that are drawn instead of read."""
