"""What can be said of a finished run in numbers."""
