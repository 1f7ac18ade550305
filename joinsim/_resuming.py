"""Going on with a run whose process died."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from joins.queries.parser import parse_query
from joinsim._joining import prepare_data
from joinsim._outcomes import Run
from joinsim._scenario import Scenario
from scenarios.observer import SILENT, Observer
from scenarios.resuming import read_interrupted
from scenarios.scenario_files import ConfigError
from scenarios.wall_clock import WallClock
from topologies import TOPOLOGIES, Topology, find_topology


def resume(
    directory: str | Path,
    streams: Mapping[str, Any] | None = None,
    *,
    topology: type[Topology[Any]] | Topology[Any] | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    address: str | None = None,
    observer: Observer = SILENT,
    wall_clock: WallClock | None = None,
) -> Run:
    """Go on with a run that was interrupted, from what it saved to the result it would have had.

    Parameters
    ----------
    directory
        Of the run, which was started with ``save_every=``; what it reads and how it runs is
        written down there.
    streams, time, arrival
        As they were passed to `run`, where streams were tables in memory.
    topology
        As it was passed to `run`, where it was of your own.
    address
        A running Ray cluster, as for `run`.
    observer
        Shows progress; by default nothing is shown.
    wall_clock
        Measures the run's wall time from here on; by default from the call.

    Raises
    ------
    ConfigError
        There is no such run, it has finished, another version began it, or its data changed.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     run = js.resume("runs/interrupted")
    ... except js.ConfigError as error:
    ...     print(error)
    runs/interrupted: there is no such directory
    """
    interrupted = read_interrupted(Path(directory))
    config = interrupted.configuration
    if topology is None and config.get("topology") not in TOPOLOGIES:
        raise ConfigError(
            f"{directory}: {config.get('topology')} is a topology of your own: pass it as topology="
        )
    if streams is None:
        prepared = interrupted.load_streams()
    else:
        query = parse_query(config["query"]).bind(**{k: str(v) for k, v in config["bind"].items()})
        prepared = prepare_data(query, streams, time, arrival)
    interrupted.check_streams(prepared)
    scenario = Scenario(
        config,
        topology=None if topology is None else find_topology(topology),
        streams=prepared,
        observer=observer,
        keep=True,
        replay=lambda seed: interrupted.replay,
        wall_clock=wall_clock,
    )
    return scenario.resume(interrupted, address=address)
