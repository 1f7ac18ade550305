"""Hosts the actors of any topology inside Spark Structured Streaming."""
