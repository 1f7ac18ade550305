"""One query on every system that can evaluate it: same data, same network, side by side."""
