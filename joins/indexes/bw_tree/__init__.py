"""The Bw-Tree: a latch-free index, which threads share by compare-and-swap alone."""
