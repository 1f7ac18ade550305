"""The verdict on a run: named checks over its results and its trace."""

from scenarios.verdict.judge import judge
from scenarios.verdict.verdict import Check, Offender, Verdict

__all__ = ["Check", "Offender", "Verdict", "judge"]
