"""The roles of stream-join systems as plain state machines, and the hosts that run them."""
