"""The verdict: named checks over a run's results and trace, each true, false or unknown."""

from __future__ import annotations

from dataclasses import dataclass, field

OFFENDERS_NAMED = 10
"""Offending pairs named in a verdict: enough to see a pattern, few enough to read."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One checker's finding; *passed* is None when nothing was tested."""

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class Offender:
    """One pair that should or should not be there, and when its tuple reached each PE."""

    kind: str
    """``missing``, ``duplicate``, ``expired`` or ``wrong``."""
    probe_stream: int
    probe_id: int
    match_id: int | tuple[int, ...]
    """The pair; in a join of more than two streams the ids of the other streams' tuples."""
    arrivals_ms: dict[str, float]
    """Actor name to the virtual time, in milliseconds, at which the probing tuple got there."""


@dataclass(kw_only=True)
class Verdict:
    """What came out, against what should have.

    ``claims_exact`` is what the topology says of itself. Where a run promised less, ``as_promised``
    says that all that differs is what it may differ in: results that came again after a crash, or
    that an approximate run leaves out.
    ``late`` tuples were dropped by a watermark.

    ``spurious`` counts pairs that should not be there: ``expired`` ones satisfy the query but lie
    outside the window, ``wrong`` ones do not satisfy it; ``invented`` ones, of the wrong, are of a
    probing tuple or a stream that does not exist. ``inconsistent`` tuples were reported with other
    pairs than were listed, by the run or, where it lists none, by its replay. ``differing_tuples``
    counts the probing tuples with a pair that differs; ``off_sample``, in an approximate run, those
    that have not just the pairs of what it keeps.
    """

    claims_exact: bool
    as_promised: bool = False
    late: int = 0
    expected: int = 0
    produced: int = 0
    missing: int = 0
    duplicate: int = 0
    expired: int = 0
    wrong: int = 0
    invented: int = 0
    inconsistent: int = 0
    differing_tuples: int = 0
    off_sample: int = 0
    checks: list[CheckResult] = field(default_factory=list)
    offenders: list[Offender] = field(default_factory=list)

    @property
    def spurious(self) -> int:
        """Pairs produced that should not be there."""
        return self.expired + self.wrong

    @property
    def right(self) -> int:
        """Pairs produced that should be there, each once."""
        return self.produced - self.duplicate - self.spurious

    @property
    def adds_up(self) -> bool:
        """Whether as many expected pairs came out as those produced and those missing leave.

        What was reported of tuples may differ from the pairs that are counted by kind.
        """
        return self.right == self.expected - self.missing or self.inconsistent > 0

    @property
    def exact(self) -> bool:
        """Whether exactly the expected pairs came out, each once."""
        wrong = self.missing or self.duplicate or self.spurious
        return not (wrong or self.differing_tuples or self.inconsistent)

    @property
    def misread(self) -> bool:
        """Whether the expected pairs may not be those of the query as it is written."""
        return any(check.name == "query" and check.passed is False for check in self.checks)

    @property
    def unknown(self) -> list[str]:
        """What was not looked at: the checks without a finding, and why."""
        return [f"{check.name}: {check.detail}" for check in self.checks if check.passed is None]

    @property
    def passed(self) -> bool | None:
        """Whether every check that tested something passed, and the pairs are as was promised.

        None when no pair was there to test, and when pairs differ in a run that promised nothing
        of them: nobody can say whether they differ as they should.
        """
        if any(check.passed is False for check in self.checks):
            return False
        return True if self.tested and (self.exact or self.as_promised) else None

    @property
    def tested(self) -> bool:
        """Whether there was a pair to get right or wrong."""
        return bool(self.expected or self.produced)
