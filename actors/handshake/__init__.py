"""Handshake joins: two streams flow past each other through a chain of cores."""
