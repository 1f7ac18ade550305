"""Index structures, all with the same small interface (see `joins.indexes.b_plus.b_plus_tree`)."""
