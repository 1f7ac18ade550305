"""What a window join should cost, by PIM-Tree's analytical model."""
