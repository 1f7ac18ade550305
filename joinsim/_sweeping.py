"""Sweeps: one join over ranges of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joinsim._joining import of_query
from joinsim._scenario import Scenario

if TYPE_CHECKING:
    from joinsim._outcomes import StudyRun


def sweep(
    what: str,
    streams: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, Sequence[Any]] | Sequence[str],
    seeds: int = 1,
    measures: Sequence[str] = (),
    find: str | None = None,
    scale: str = "laptop",
    time: str | Mapping[str, str] | None = None,
    processes: int | None = None,
    fresh: bool = False,
    out: str | Path | None = None,
    **settings: Any,
) -> StudyRun:
    """Run a join with every combination of some parameters' values.

    Parameters
    ----------
    what, streams
        A scenario's name or a TOML file; or a query and its data, as for `run`.
    over
        Parameters to their values, or ranges as on the command line
        (``"rate_tps=1000..100000:log:5"``). A parameter is a key as for ``--set``, or its last part
        in the sections ``feeding`` and ``network``; ``pes``, ``window`` (the query's placeholder
        W), ``skew`` (of synthetic fields) or ``topology``. The first runs along x, the second from
        line to line, others from panel to panel.
    seeds
        With how many seeds each point runs, for 95 % intervals.
    measures
        Dotted names, see `scenarios.measures`; by default throughput, latency and bytes.
    find
        ``"sustainable"``: find at each point the highest rate at which queues do not grow, see
        `scenarios.sustainable`.
    scale
        Of a scenario.
    time
        As for `run`.
    processes
        How many points run at once; by default one for each core. In a script, call it under
        ``if __name__ == "__main__"`` where it is more than one.
    fresh
        Whether to run points again whose results are in *out*, of the same configuration, data and
        version.
    out
        Folder for what it writes; by default a temporary one.
    settings
        What all points share: keys as for ``--set``; keys of sections as mappings.

    Raises
    ------
    JoinsimError
        A range or a key is wrong, or a point cannot be run; before any point runs.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> swept = js.sweep(
    ...     "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
    ...     {"T": {"x": np.arange(100) % 7}},
    ...     over={"pes": [1, 2], "topology": ["split_join", "scale_join"]}, processes=1,
    ... )
    >>> swept.points.num_rows
    4
    """
    if streams is None:
        scenario = Scenario(what, scale=scale)
    else:
        scenario = of_query(what, streams, None, time=time)
    return scenario.with_settings(settings).sweep(
        over,
        seeds=seeds,
        measures=measures,
        find=find,
        processes=processes,
        fresh=fresh,
        out=out,
    )
