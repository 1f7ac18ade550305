"""Studies: a figure or table of a paper as many runs, beside what the paper claims."""
