"""The public calls that join: over a scenario, or over a query and a caller's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from joins.queries.query import JoinQuery
from joinsim._outcomes import Comparison, Run
from joinsim._scenario import Scenario
from scenarios.observer import SILENT, Observer
from scenarios.plan import bound_query
from scenarios.preparation import Preparation, prepare_tables
from scenarios.replays import RECORDED
from scenarios.run_directory import read_interrupted
from scenarios.scenario_files import ConfigError
from scenarios.streams import check_time, codes_mistake
from scenarios.wall_clock import WallClock
from spark_bridge.prepared import SUMMARY, PreparedStream, load_stream
from topologies import AUTO, TOPOLOGIES, Named, Topology, find_topologies, find_topology
from topologies.topology import SinkPlace

if TYPE_CHECKING:
    from joinsim._outcomes import Advice, EngineComparison, StudyRun
    from scenarios.planners import Proposal


def run(
    query: str,
    streams: Mapping[str, Any],
    *,
    topology: Named | None = None,
    network: str | Mapping[str, Any] = "rack",
    feeding: Mapping[str, Any] | None = None,
    faults: Sequence[Mapping[str, Any]] = (),
    recovery: Mapping[str, Any] | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    seed: NonNegativeInt = 1,
    pairs: bool = True,
    backend: str = "inline",
    clock: str = "virtual",
    processes: PositiveInt | str = 2,
    address: str | None = None,
    profile: str | Path = "default",
    sink: SinkPlace = "partitioned",
    bind: Mapping[str, str | int] | None = None,
    out: str | Path | None = None,
    save_every: str | PositiveInt | None = None,
    **parameters: Any,
) -> Run:
    """Join streams on a simulated cluster, and check the answer.

    Parameters
    ----------
    query
        The join, as SQL with a window or an interval.
    streams
        Stream name to its data: anything with the Arrow C stream interface (pyarrow, pandas,
        Polars, DuckDB), a mapping of names to NumPy arrays, the path of a Parquet file, or of a
        folder of them (looked for in ``JOINSIM_DATA`` and among our samples, too), a prepared
        stream (see `prepare`, which reads CSV) or its folder, or a `synthetic` stream.
    topology
        The system to run it on: a name (see `topologies`), or a `Topology` of your own. By default
        (``"auto"``) one that fits the query; the run's notes say why.
    network
        A preset (``same-host``, ``rack``, ``data-centre``, ``wan``, ``infiniband``), or the keys
        of a scenario's section ``network``.
    feeding
        The keys of a scenario's section ``feeding``: ``batch_rows``, ``rate_tps``, ``disorder``
        and so on.
    faults
        What goes wrong meanwhile, in virtual time: rows of a scenario's ``[[faults]]``, such as
        ``{"kind": "loss", "rate": 0.01, "start": "1 s", "end": "2 s"}``.
    recovery
        The keys of a scenario's section ``recovery``: ``guarantee``, ``interval``, ``storage``.
        If given, even empty, a live run survives the loss of a process.
    time
        The column of the event time, of all streams or by stream: timestamps, dates, texts in ISO
        8601, or whole nanoseconds; or ``"rows"``, the number of the row, from 0. By default the one
        that the query's interval names, else ``ts``, else the first column of timestamps, else
        ``"rows"``.
    arrival
        The order in which tuples arrive, of all streams or by stream: a column of times, or
        ``"rows"``, the order of the rows. By default it is the order of event time. For interval
        joins, and windows of time in a system that joins out of order.
    rows
        Take at most this many tuples of each stream, the first in time.
    seed
        Of everything random in the run.
    pairs
        Whether pairs are listed (`Run.pairs`), or only counted and checked.
    backend, clock, processes, address
        Where the actors live: ``inline`` or ``ray``; in ``virtual`` time or ``live``, on Ray
        processes; on a running cluster.
    profile
        What work costs: a profile that comes with joinsim (``default``, ``multicore`` and others),
        or a TOML file that `calibrate` has written.
    sink
        ``"partitioned"``: results stay at the PEs that find them. ``"single"``: all are sent to
        one place.
    bind
        Values of the query's placeholders.
    out
        Folder for what the run writes; by default a temporary one.
    save_every
        How often the run saves itself into *out*, such as ``"10 s"`` of real time, for `resume` to
        go on when its process has died. In virtual time.
    parameters
        Of the topology, see `TopologyInfo.parameters`; or other keys of a scenario file, such as
        ``silence`` and ``encrypt``.

    Returns
    -------
    Run
        What came out.

    Raises
    ------
    QueryError, TopologyError, ConfigError, DataError, NetworkError
        Naming the part of the query, parameter, key, column or row that is wrong, and what is
        allowed. All are `JoinsimError`.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> run = js.run(
    ...     "SELECT * FROM A, B WHERE A.key = B.key "
    ...     "AND B.ts BETWEEN A.ts - INTERVAL '2 ns' AND A.ts + INTERVAL '2 ns'",
    ...     {
    ...         "A": {"ts": np.arange(0, 100, 10), "key": np.arange(10) % 3},
    ...         "B": {"ts": np.arange(1, 101, 10), "key": np.arange(10) % 2},
    ...     },
    ...     topology="kp_oij",
    ... )
    >>> run.verdict.exact, run.pairs.num_rows
    (True, 4)
    """
    wall_clock = WallClock()
    scenario = of_query(
        query,
        streams,
        topology,
        wall_clock,
        time=time,
        arrival=arrival,
        bind=bind,
        network=network,
        feeding=feeding,
        faults=faults,
        recovery=recovery,
        rows=rows,
        seed=seed,
        pairs=pairs,
        backend="ray" if clock == "live" else backend,
        clock=clock,
        processes=processes,
        profile=str(profile),
        sink=sink,
    ).with_settings(parameters)
    finished = scenario.run(out=out, address=address, save_every=save_every)
    assert isinstance(finished, Run)  # a query is not a study
    return finished


def compare(
    query: str,
    streams: Mapping[str, Any],
    *,
    topologies: Named | Sequence[Named] = (),
    network: str | Mapping[str, Any] = "rack",
    feeding: Mapping[str, Any] | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    seed: NonNegativeInt = 1,
    sink: SinkPlace = "partitioned",
    bind: Mapping[str, str | int] | None = None,
    out: str | Path | None = None,
    **parameters: Any,
) -> Comparison:
    """Run a query on several systems over the same data, seed and network, and rank them.

    Parameters are those of `run`; *topologies* are the systems, names or classes of your own, by
    default all that can evaluate the query; each of *parameters* goes to the systems that have one
    of that name.

    Raises
    ------
    JoinsimError
        No system can evaluate the query, or the query, the data or a parameter is wrong.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> ranked = js.compare(
    ...     "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
    ...     {"T": {"x": np.arange(100) % 7}},
    ...     topologies=["nested_loop", "split_join"],
    ... )
    >>> sorted(ranked.table["topology"].to_pylist())
    ['nested_loop', 'split_join']
    """
    systems = find_topologies(topologies)
    how: dict[str, Any] = {"time": time, "arrival": arrival, "bind": bind, "network": network}
    how |= {"feeding": feeding, "rows": rows, "seed": seed, "sink": sink}
    scenario = of_query(query, streams, systems[0] if systems else None, **how)
    return scenario.with_settings(parameters).compare(systems, out=out)


def compare_engines(
    query: str,
    streams: Mapping[str, Any],
    *,
    engines: str | Sequence[str] = "all",
    limit_s: PositiveFloat | None = None,
    topology: Named | None = None,
    feeding: Mapping[str, Any] | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    seed: NonNegativeInt = 1,
    pairs: bool = False,
    bind: Mapping[str, str | int] | None = None,
    out: str | Path | None = None,
    **parameters: Any,
) -> EngineComparison:
    """Run a query on real engines over the same data, by the clock, and rank them.

    Other parameters are those of `run`; *topology* is for the engines that run joinsim's operators.

    Parameters
    ----------
    engines
        Their names, in a list or with commas between, or ``all``.
    limit_s
        Seconds after which an engine is stopped; in the main thread alone.
    pairs
        Whether each engine writes all pairs to files, or counts them.

    Raises
    ------
    JoinsimError
        There is no such engine, or the query, the data or a parameter is wrong.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> compared = js.compare_engines(
    ...     "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
    ...     {"T": {"x": np.arange(100) % 7}},
    ...     engines="duckdb",
    ... )
    >>> compared.passed, compared.table["engine"].to_pylist()
    (True, ['duckdb'])
    """
    how: dict[str, Any] = {"time": time, "arrival": arrival, "bind": bind, "feeding": feeding}
    how |= {"rows": rows, "seed": seed, "pairs": pairs}
    scenario = of_query(query, streams, topology, **how).with_settings(parameters)
    return scenario.compare_engines(engines, limit_s=limit_s, out=out)


def sweep(
    what: str,
    streams: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, Sequence[Any]] | Sequence[str] | str,
    seeds: PositiveInt = 1,
    measures: Sequence[str] = (),
    find: str | None = None,
    scale: str | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    bind: Mapping[str, str | int] | None = None,
    processes: PositiveInt | None = None,
    fresh: bool = False,
    out: str | Path | None = None,
    **settings: Any,
) -> StudyRun:
    """Run a join with every combination of some parameters' values.

    Parameters
    ----------
    what, streams
        A scenario's name or a TOML file; or a query and its data, as for `run`. With the setting
        ``survey``, the points are surveys instead of runs (`scenarios.survey`).
    over
        Parameters to their values, or ranges as on the command line
        (``"rate_tps=1000..100000:log:5"``). A parameter is a key as for ``--set``, or its last part
        in the sections ``feeding`` and ``network``; ``pes``, ``window`` (the query's placeholder
        W), ``skew`` (of synthetic fields) or ``topology``. The first runs along x, the second from
        line to line, others from panel to panel; but topologies are always the lines of two ranges,
        and ``pes`` beside ``topology`` runs along x.
    seeds
        How many seeds each point runs with, for 95 % intervals.
    measures
        Dotted names, see `scenarios.measures`; by default throughput, latency and bytes.
    find
        ``"sustainable"``: find at each point the highest rate at which queues do not grow, see
        `scenarios.measures.is_sustained`.
    scale
        Of a scenario; by default ``laptop``.
    time, arrival, rows, bind
        As for `run`; the first two of a query alone.
    processes
        How many points run at once; by default one for each core.
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
    scenario = _make_scenario(
        what, streams, scale, time=time, arrival=arrival, rows=rows, bind=bind
    )
    return scenario.with_settings(settings).sweep(
        over,
        seeds=seeds,
        measures=measures,
        find=find,
        processes=processes,
        fresh=fresh,
        out=out,
    )


def advise(
    what: str,
    streams: Mapping[str, Any] | None = None,
    *,
    goal: str | Sequence[str] = "throughput",
    rate_tps: PositiveInt | None = None,
    machines: PositiveInt = 8,
    network: str | Mapping[str, Any] | None = None,
    topologies: Named | Sequence[Named] = (),
    engines: str | Sequence[str] = "duckdb,polars",
    budget_s: NonNegativeFloat = 60.0,
    seeds: PositiveInt = 3,
    prices: Mapping[str, NonNegativeFloat] | None = None,
    scale: str | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    bind: Mapping[str, str | int] | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Advice:
    """Find the topology, and its parameters, that is best for a query and its data.

    Every exact topology that can evaluate the query is simulated, with each structure that it
    offers and with PEs in powers of two; bad ones stop early
    (`scenarios.topology_search`). Then real engines evaluate the query on this machine.

    Parameters
    ----------
    what, streams
        A query and its data, as for `run`; or a scenario's name or a TOML file.
    goal
        ``throughput``, ``latency``, ``bytes`` or ``memory``; of several the first ranks, and
        the best trade-offs are marked.
    rate_tps
        The caller's own rate, of all streams together; by default that of the event times. Latency,
        bytes and memory are measured at this rate.
    machines
        The most that may do the join's work; sources and sinks are not counted.
    network
        As for `run`; ``{"cores": 4}`` gives each machine four. By default ``rack``, or what the
        scenario says.
    topologies
        The systems to look at; by default all.
    engines
        Real engines, in a list or with commas between, that run in what time is left: ``duckdb``,
        ``polars``, ``native-spark`` and others (see `Scenario.compare_engines`), or ``all``; empty
        for none.
    budget_s
        Seconds of real time for all of it. It decides how many candidates run, at least one.
    seeds
        How many the best run with, for 95 % intervals.
    prices
        ``core_hour``, ``machine_hour``, ``gigabyte`` (that crosses the network), in one currency.
    scale
        Of a scenario; by default ``laptop``.
    time, arrival, rows, bind
        As for `run`; the first two of a query alone.
    out
        Folder for what it writes; by default a temporary one.
    settings
        What all candidates share: keys as for ``--set``; what is a parameter of some systems goes
        to those.

    Raises
    ------
    JoinsimError
        There is no such goal, price, engine or parameter, or nothing can evaluate the query on
        so few machines.

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
    how: dict[str, Any] = {"time": time, "arrival": arrival, "rows": rows, "bind": bind}
    scenario = _make_scenario(what, streams, scale, network=network, **how)
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


def plan(
    query: str,
    streams: Mapping[str, Any],
    *,
    topology: str = "semijoin",
    simulate: bool = True,
    network: str | Mapping[str, Any] = "rack",
    feeding: Mapping[str, Any] | None = None,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    rows: PositiveInt | None = None,
    seed: NonNegativeInt = 1,
    bind: Mapping[str, str | int] | None = None,
    **parameters: Any,
) -> Proposal:
    """Return the plan of a system that plans its join (``semijoin``, ``ibwj``), and its costs.

    Parameters are those of `run`; with *simulate* the plan is run, to compare its costs.

    Raises
    ------
    JoinsimError
        The system has nothing to plan, or the query, the data or a parameter is wrong.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> keys = {"k": np.arange(200) % 10}
    >>> proposal = js.plan(
    ...     "SELECT * FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    ...     "WINDOW AS (SLIDE INTERVAL '1' ON '20')",
    ...     {"A": keys, "B": keys, "C": keys}, simulate=False,
    ... )
    >>> [cost.name for cost in proposal.costs]
    ['bytes shipped', 'execution time']
    """
    how: dict[str, Any] = {"bind": bind, "network": network, "rows": rows, "seed": seed}
    how |= {"time": time, "arrival": arrival, "feeding": feeding}
    scenario = of_query(query, streams, topology, **how).with_settings(parameters)
    return scenario.plan(simulate=simulate)[0]


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
        prepared = interrupted.load_streams(Preparation())
    else:
        query = bound_query(config["query"], config["bind"])
        times, arrivals = _by_stream(query, "time", time), _by_stream(query, "arrival", arrival)
        prepared = _prepare_data(query, streams, times, arrivals)
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


def _make_scenario(
    what: str, streams: Mapping[str, Any] | None, scale: str | None, **how: Any
) -> Scenario:
    """Return the scenario called *what*; with *streams*, that of the query *what* over them.

    *how* are keys for `of_query`; those that are None are left out.
    """
    given = {key: value for key, value in how.items() if value is not None}
    if streams is not None:
        if scale is not None:
            raise ConfigError("scale: a scenario has scales; rows= takes fewer tuples of data")
        return of_query(what, streams, None, **given)
    for key in ("time", "arrival"):
        if key in given:
            raise ConfigError(
                f"{key}: it is for a query over data that is passed; a scenario names its own, as "
                f"in streams.0.{key}"
            )
    bound = {f"bind.{name}": value for name, value in given.pop("bind", {}).items()}
    return Scenario(what, scale=scale or "laptop", settings=given | bound)


def of_query(
    query: str,
    streams: Mapping[str, Any],
    topology: Named | None,
    wall_clock: WallClock | None = None,
    *,
    time: str | Mapping[str, str] | None = None,
    arrival: str | Mapping[str, str] | None = None,
    bind: Mapping[str, str | int] | None = None,
    network: str | Mapping[str, Any] = "rack",
    **keys: Any,
) -> Scenario:
    """Return the scenario of a query over data that the caller passes.

    *keys* are those of a configuration; None leaves one at its default.
    """
    bound = dict(bind or {})
    parsed = bound_query(query, bound)
    times, arrivals = _by_stream(parsed, "time", time), _by_stream(parsed, "arrival", arrival)
    prepared = _prepare_data(parsed, streams, times, arrivals)
    if wall_clock:
        wall_clock.lap("prepare")
    system = None if topology in (None, AUTO) else find_topology(topology)
    return Scenario(
        {
            "query": query,
            "bind": bound,
            "streams": [
                {
                    "name": stream.name,
                    "table": f"{stream.rows} tuples",
                    "time": at,
                    "arrival": arrives or (None if stream.delays is None else RECORDED),
                }
                for stream, at, arrives in zip(prepared, times, arrivals, strict=True)
            ],
            "topology": system.name if system else AUTO,
            "network": network,
            **{key: value for key, value in keys.items() if value is not None},
        },
        topology=system if system and system.name not in TOPOLOGIES else None,
        streams=prepared,
        wall_clock=wall_clock,
    )


def _prepare_data(
    query: JoinQuery,
    streams: Mapping[str, Any],
    times: Sequence[str | None],
    arrivals: Sequence[str | None],
) -> tuple[PreparedStream, ...]:
    """Return the streams of *query* in its order, prepared from what was passed to `run`."""
    missing = [name for name in query.streams if name not in streams]
    unknown = [name for name in streams if name not in query.streams]
    wrong = [f"no data for {', '.join(missing)}"] if missing else []
    if unknown:
        wrong.append(f"the query knows no {', '.join(map(str, unknown))}")
    if wrong:
        raise ConfigError(f"streams: the query has {', '.join(query.streams)}; {'; '.join(wrong)}")
    data = [_load_if_prepared(streams[name]) for name in query.streams]
    prepared = tuple(stream for stream in data if isinstance(stream, PreparedStream))
    for place, stream in enumerate(data):
        if isinstance(stream, PreparedStream):
            check_time(query, place, stream)
    if len(prepared) == len(data):
        for stream, time, arrival in zip(prepared, times, arrivals, strict=True):
            _check_settled(stream, "time", None if time == stream.time else time, "event time")
            _check_settled(stream, "arrival", arrival, "order of arrival")
        if codes_mistake(query, prepared) is None:
            return prepared
    # Texts of streams that were prepared apart are read again, to have codes in common.
    return prepare_tables(query, data, times, arrivals)


def _check_settled(stream: PreparedStream, key: str, given: str | None, meaning: str) -> None:
    """Raise :exc:`ConfigError` where a prepared *stream* is given another time, or an arrival."""
    if given is not None:
        raise ConfigError(
            f"{key} = {given!r}: stream {stream.name!r} is prepared, and its {meaning} was settled "
            "then; leave it out, or pass the data that it was prepared from"
        )


def _by_stream(
    query: JoinQuery, what: str, columns: str | Mapping[str, str] | None
) -> list[str | None]:
    """Return the column of each stream; raise :exc:`ConfigError` for a stream that is not there."""
    if columns is None or isinstance(columns, str):
        return [columns] * len(query.streams)
    for name in columns:
        if name not in query.streams:
            raise ConfigError(
                f"{what}: the query knows no stream {name!r}, only {', '.join(query.streams)}"
            )
    return [columns.get(name) for name in query.streams]


def _load_if_prepared(stream: Any) -> Any:
    """Return the stream in a folder that has a prepared one; any other data as it is."""
    if isinstance(stream, (str, Path)) and (Path(stream) / SUMMARY).is_file():
        return load_stream(stream)
    return stream
