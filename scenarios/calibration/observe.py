"""One live run watched: what its operators did and took, and what passing their messages on took.

What an operator takes is measured where predictions are about it: in a process beside others, which
share caches and memory with it, and with arrays that another process has just sent. Alone it takes
less, and how much less differs from one operator to the next.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from actors.hosting.live.parcels import Served
from scenarios.calibration.transport import Carried, carried_by
from scenarios.plan import Plan
from scenarios.run import homes, prepare_live

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses


def observe(plan: Plan, processes: RayProcesses) -> tuple[dict[str, Served], list[Carried]]:
    """Run *plan* live in *processes*, which serve this run and no other; forget its results.

    Returns
    -------
    tuple
        Operator to what serving its actors came to, and what each process passed on.
    """
    graph = plan.graph(pairs=False)
    run = prepare_live(plan, graph, processes)
    measured = run.run(lambda count: None)
    trace = np.concatenate([entry for entry in run.entries() if isinstance(entry, np.ndarray)])
    home_of = homes(graph, processes.count)
    operators: dict[str, Served] = defaultdict(Served)
    outside_ns = dict(measured.processor_ns)
    for name, role in graph.nodes(data="role"):
        served = measured.served[name]
        operators[role].add(served)
        outside_ns[home_of[name]] -= served.worked_ns
    home = np.array([home_of[name] for name in graph])
    return dict(operators), [
        carried_by(process, ns / 1e9, trace, home) for process, ns in outside_ns.items()
    ]
