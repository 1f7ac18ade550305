"""Index structures; those over a stream's tuples have the interface in `joins.indexes.index`."""
