"""One run from plan to verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scenarios.running.histogram import Histogram
from scenarios.running.live_run import run_live
from scenarios.running.plan import Plan
from scenarios.running.rehearsal import rehearse
from scenarios.running.simulation import OnRun, Simulated, simulate
from scenarios.verdict import Verdict, judge
from scenarios.verdict.approximation import Approximated, approximated


@dataclass(frozen=True, kw_only=True)
class Report(Simulated):
    """A finished run: what was planned, counted, measured and judged.

    Attributes
    ----------
    latencies
        Of every tuple, nanoseconds of virtual time from its birth to the last report of it.
    approximated
        What an approximate run says of its recall; None where nothing is left out on purpose.
    """

    plan: Plan
    directory: Path
    verdict: Verdict
    latencies: Histogram
    approximated: Approximated | None = None


def execute(
    plan: Plan,
    directory: Path,
    *,
    on_run: OnRun | None = None,
    on_judge: Callable[[], None] | None = None,
    rehearsal: bool = True,
) -> Report:
    """Run *plan* into *directory* and judge it, by default after a `rehearsal.rehearse`.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`.
    """
    if rehearsal:
        rehearse(*plan.rehearsal)
    carry_out = run_live if plan.config.clock == "live" else simulate
    simulated = carry_out(plan, directory, pairs=plan.config.pairs, on_run=on_run)
    if on_judge:
        on_judge()
    verdict, latencies = judge(
        query=plan.query,
        files=plan.files,
        feeding=plan.feeding,
        directory=directory,
        outcome=simulated.outcome,
        claims_exact=plan.topology.claims_exact(plan.parameters),
        pairs_directory=lambda: _with_pairs(plan, directory),
    )
    approximation = plan.topology.approximation(plan.query, plan.parameters)
    figures = None
    if approximation:
        placement = plan.graph(pairs=plan.config.pairs).placement
        figures = approximated(
            approximation, plan.files, directory, placement, simulated.outcome, verdict
        )
        verdict.checks += figures.checks(verdict)
    return Report(
        plan=plan,
        directory=directory,
        verdict=verdict,
        latencies=latencies,
        approximated=figures,
        **vars(simulated),
    )


def _with_pairs(plan: Plan, directory: Path) -> Path:
    """Return where the run's pairs are, replaying it from its seed if it did not keep them.

    A live run cannot be repeated: what its replay in virtual time got wrong stands in for it.
    """
    if plan.config.pairs:
        return directory
    replayed = directory / "replay"
    replayed.mkdir(exist_ok=True)
    simulate(plan, replayed, pairs=True)
    return replayed
