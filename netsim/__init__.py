"""One virtual clock and the network under it, on simpy."""
