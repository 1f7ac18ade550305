"""What a join query says: streams, predicates, windows, intervals; and how it is spelt."""
