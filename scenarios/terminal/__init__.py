"""What a person sees in the terminal: progress, and results when they are there.

Import it only where something is printed: rich takes a while to load.
"""
