"""Live runs of every system, one after the other: what a profile is fitted to and held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.hosting.live.parcels import Served
from scenarios.calibration.fidelity import Live, run_live
from scenarios.calibration.observe import observe
from scenarios.calibration.transport import Carried
from scenarios.plan import Plan

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

_REPEATS = 3
"""How often the first plan of a system and query is run: where a machine has neighbours its speed
changes within minutes, and what is predicted from one run should not hang on its luck."""


@dataclass
class Watched:
    """What was seen of live runs.

    Attributes
    ----------
    runs
        How many were watched for what their operators took.
    operators
        System to operator to its part in each of them.
    carried
        What processes of these runs passed on.
    live
        Plans, and what they came to when they were run as a whole.
    """

    runs: int = 0
    operators: dict[str, dict[str, list[Served]]] = field(default_factory=dict)
    carried: list[Carried] = field(default_factory=list)
    live: list[tuple[Plan, Live]] = field(default_factory=list)

    def _observe(self, plan: Plan, places: RayProcesses) -> None:
        operators, carried = observe(plan, places)
        roles = self.operators.setdefault(plan.topology.name, {})
        for role, served in operators.items():
            roles.setdefault(role, []).append(served)
        self.carried += carried
        self.runs += 1


def watch(
    plans: Sequence[Plan],
    *,
    processes: int,
    observing: bool,
    measuring: bool,
    note: Callable[[str], None],
) -> Watched:
    """Run *plans* live, in so many Ray *processes*.

    Parameters
    ----------
    observing
        Whether all are watched for what their operators take.
    measuring
        Whether the first of each system and query is measured as a whole, too: each time right
        after it was watched, so that both met the same neighbours.
    note
        Told what is run next.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`, and
    :exc:`actors.hosting.errors.RayUnavailableError` where Ray has no room for the processes.
    """
    # Only here: importing Ray takes a second that other commands need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    watched = Watched()
    first = {(plan.topology.name, plan.config.name): plan for plan in reversed(plans)}
    with ray_cluster(processes=processes):
        for plan in plans:
            system, query = plan.topology.name, plan.config.name
            is_first = plan is first[system, query]
            if observing or (measuring and is_first):
                note(f"{system}, {query}, {plan.feeding.batch_rows:,} tuples a message")
            runs = []
            for _ in range(_REPEATS if is_first else 1):
                if observing:
                    with RayProcesses(processes) as places:
                        watched._observe(plan, places)
                if measuring and is_first:
                    runs.append(run_live(plan, processes=processes))
            if runs:
                watched.live.append((plan, Live.of(runs)))
    return watched
