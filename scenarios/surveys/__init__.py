"""Points of a study that are no runs: plans, or index structures by themselves."""
