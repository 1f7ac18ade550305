"""The expected result of a query, by means that share no code with the indexes."""

from joins.oracle.expected import expected

__all__ = ["expected"]
