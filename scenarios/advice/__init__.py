"""Advice: which topology for a query, its data, a network, a number of machines and a goal."""
