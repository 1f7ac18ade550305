"""Plans before they are run: what a system would do with a query, and what that would cost."""
