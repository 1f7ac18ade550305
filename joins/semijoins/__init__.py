"""Distributed stream semijoins: one-way joins, and what sites store of each other's windows."""
