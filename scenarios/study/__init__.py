"""Studies: a figure or table of a paper as many runs, with what the paper says beside."""
