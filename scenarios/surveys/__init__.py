"""Surveys: figures of a paper that need no query, no network and no run."""
