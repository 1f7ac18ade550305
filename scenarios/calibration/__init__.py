"""A cost profile measured on this machine, and how well it predicts live runs."""
