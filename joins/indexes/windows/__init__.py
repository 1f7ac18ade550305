"""Indexes over a whole window, exact to the tuple."""
