"""Real engines, compared on one query and the same streams."""
