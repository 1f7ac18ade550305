"""Spark beside the laboratory: data pipeline, hosted operators, native joins, SQL oracle."""
