"""Advice: which topology for a query, its data, a network and a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joinsim._joining import of_query
from joinsim._scenario import Scenario

if TYPE_CHECKING:
    from joinsim._outcomes import Advice


def advise(
    what: str,
    streams: Mapping[str, Any] | None = None,
    *,
    goal: str | Sequence[str] = "throughput",
    rate_tps: int | None = None,
    machines: int = 8,
    network: str | Mapping[str, Any] = "rack",
    topologies: Sequence[str] = (),
    engines: str = "duckdb,polars",
    budget_s: float = 60.0,
    seeds: int = 3,
    prices: Mapping[str, float] | None = None,
    scale: str = "laptop",
    time: str | Mapping[str, str] | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Advice:
    """Find the topology, and its parameters, that is best for a query and its data.

    Every exact topology that can evaluate the query is simulated, with each structure that it
    offers and with PEs in powers of two; bad ones stop early (`scenarios.advice.search`). Then real
    engines evaluate the query on this machine.

    Parameters
    ----------
    what, streams
        A query and its data, as for `run`; or a scenario's name or a TOML file.
    goal
        ``throughput``, ``latency``, ``bytes`` or ``memory``; of several the first ranks, and
        the best trade-offs are marked.
    rate_tps
        The caller's own rate, of all streams together; by default that of the event times. What is
        no throughput is measured at it.
    machines
        At most so many do the join's work; sources and sinks are not counted.
    network
        As for `run`, of a query; ``{"cores": 4}`` gives each machine so many.
    topologies
        The systems to look at; by default all.
    engines
        Real engines, with commas between, that run in what time is left: ``duckdb``, ``polars``,
        ``native-spark`` and others (see `Scenario.compare_engines`), or ``all``; empty for none.
    budget_s
        Seconds of real time that all may take. They decide how many candidates run; one does in
        any case.
    seeds
        With how many the best run, for 95 % intervals.
    prices
        ``core_hour``, ``machine_hour``, ``gigabyte`` (that crosses the network), in one currency.
    scale
        Of a scenario.
    time
        As for `run`.
    out
        Folder for what it writes; by default a temporary one.
    settings
        What all candidates share: keys as for ``--set``.

    Raises
    ------
    JoinsimError
        There is no such goal, price or engine, or nothing can evaluate the query on so few
        machines.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> advice = js.advise(
    ...     "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
    ...     {"T": {"x": np.arange(100) % 7}},
    ...     topologies=["nested_loop", "split_join"], machines=3, seeds=1, engines="",
    ... )
    >>> advice.best.topology in ("nested_loop", "split_join")
    True
    """
    if streams is None:
        scenario = Scenario(what, scale=scale)
    else:
        scenario = of_query(what, streams, None, time=time, network=network)
    given = settings | ({} if rate_tps is None else {"feeding.rate_tps": rate_tps})
    return scenario.with_settings(given).advise(
        goal=goal,
        machines=machines,
        topologies=topologies,
        engines=engines,
        budget_s=budget_s,
        seeds=seeds,
        prices=prices,
        out=out,
    )
