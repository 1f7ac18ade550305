"""Joins as Spark itself would do them, in SQL."""
