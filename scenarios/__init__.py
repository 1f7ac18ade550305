"""Scenarios: configurations, runs, verdicts, studies and reports."""

import os

# Read by Arrow when it is imported. Its own pools keep what is freed, but the memory of a run is to
# follow its window, not its history.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
