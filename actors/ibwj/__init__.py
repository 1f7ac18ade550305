"""The index-based window join of one machine, whose cores may share its indexes (PIM-Tree)."""
