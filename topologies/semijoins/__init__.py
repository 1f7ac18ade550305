"""Plans of distributed stream joins by semijoins, what they cost, and the search for good ones."""
