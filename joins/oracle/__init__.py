"""The expected result of a query, by means that share no code with the joins."""

from joins.oracle.expected import expected

__all__ = ["expected"]
