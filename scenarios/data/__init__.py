"""From raw files to prepared streams that a run can join."""
