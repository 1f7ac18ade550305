"""Window join drivers: batches of arrivals go in, every tuple's matches come out, in order."""
