"""The parallel index-based window join on simulated cores."""
