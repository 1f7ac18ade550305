"""A run on one page: its settings, figures and verdict."""
