"""Actors at full speed: no virtual time, no process in between, what is measured is real."""
