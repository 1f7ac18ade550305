"""The B+-tree."""
