"""The expected result of a query, by means that share no code with the indexes."""

from joins.oracle.evaluation import expected

__all__ = ["expected"]
