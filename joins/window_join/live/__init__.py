"""The parallel index-based window join with real threads."""
