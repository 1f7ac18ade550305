"""Real engines behind one small adapter each, to be compared on one query and the same streams."""
