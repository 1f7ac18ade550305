"""Tests of the index structures."""
