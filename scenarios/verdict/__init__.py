"""The verdict on a run: named checks over its results and its trace."""

from scenarios.verdict.judge import judge
from scenarios.verdict.verdict import CheckResult, Offender, Verdict

__all__ = ["CheckResult", "Offender", "Verdict", "judge"]
