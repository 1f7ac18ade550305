"""Join queries: streams, predicates, windows, intervals, and how they are spelt."""
