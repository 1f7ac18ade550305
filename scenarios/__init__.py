"""What a person runs: the command line, experiments, verdicts and reports."""
