"""Distributed stream semijoins: what sites keep of each other's windows, and how they join."""
