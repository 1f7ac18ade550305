"""Lists the scenarios, and the topologies with their parameters; shows and draws a topology."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from actors.whole_files import at_home
from joinsim._scenario import Scenario
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.plan import make_parameters
from scenarios.study.reproduction import PAPERS
from scenarios.study.study import load_study
from topologies import TOPOLOGIES, Named, find_topology
from topologies.actor_graph import ActorGraph
from topologies.parameters import Described, describe
from topologies.topology import SinkPlace


@dataclass(frozen=True, kw_only=True)
class TopologyInfo:
    """A topology in a list.

    Attributes
    ----------
    name, title
        As on the command line, and one line about it.
    exact
        Whether it claims every run's answer to be exactly right, left at its defaults.
    paper
        Where it was published.
    parameters
        What can be set: name, meaning, default, allowed values.

    Examples
    --------
    >>> import joinsim as js
    >>> (info,) = (info for info in js.topologies() if info.name == "split_join")
    >>> info.exact, [parameter.name for parameter in info.parameters]
    (True, ['pes', 'nodes', 'index', 'fanout'])
    """

    name: str
    title: str
    exact: bool
    paper: str
    parameters: tuple[Described, ...]

    def __repr__(self) -> str:
        """Return a line: what it is, and what can be set."""
        kind = "exact" if self.exact else "approximate"
        names = ", ".join(parameter.name for parameter in self.parameters)
        return f"<{self.name}, {kind}: {self.title}; parameters: {names or 'none'}>"


def topologies() -> list[TopologyInfo]:
    """Return the topologies there are, those of installed plugins included.

    Examples
    --------
    >>> import joinsim as js
    >>> [info.name for info in js.topologies()][:3]
    ['spo_join', 'chain_index', 'split_join']
    """
    return [
        TopologyInfo(
            name=topology.name,
            title=topology.title,
            exact=topology.exact,
            paper=topology.paper,
            parameters=tuple(describe(topology)),
        )
        for topology in TOPOLOGIES.values()
    ]


def scenarios() -> dict[str, str]:
    """Return the names of the scenarios, each with one line about it.

    Examples
    --------
    >>> import joinsim as js
    >>> "spo-fig17" in js.scenarios()
    True
    """
    return {name: scenario_files.load(name).title for name in scenario_files.catalog()}


def describe_all() -> dict[str, Any]:
    """Return what a list shows of every scenario and every topology."""
    listed = [asdict(info) for info in topologies()]
    return {"scenarios": list(map(_describe, scenario_files.catalog())), "topologies": listed}


def _describe(name: str) -> dict[str, Any]:
    """Return what a list shows of a scenario; ``tuples`` of its largest run, at laptop scale."""
    study = load_study(name)
    config = study.base if study else scenario_files.load(name)
    each = [point.config for point in study.points] if study else [config]
    return {
        "name": config.name,
        "paper": PAPERS.get(name.split("-")[0]),
        "title": config.title,
        "figure": config.figure,
        "tuples": max(filter(None, map(_tuples, each)), default=None),
        "topologies": study.topologies if study else [config.topology],
        "query": config.query_line,
        "runs": len(study.points) if study else 1,
    }


def _tuples(config: RunConfig) -> int | None:
    """Return how many tuples a run reads, of all streams; None where its files say."""
    sizes = [stream.synthetic.rows if stream.synthetic else None for stream in config.streams]
    known = [min(filter(None, (size, config.rows)), default=None) for size in sizes]
    return sum(rows for rows in known if rows) if known and None not in known else None


def scenario(name: str | Path, *, scale: str = "laptop") -> Scenario:
    """Return a scenario by name, or from a TOML file.

    Parameters
    ----------
    name
        One of `scenarios`, or a path that ends in ``.toml``.
    scale
        ``smoke`` (seconds), ``laptop`` (about a minute) or ``paper``.

    Raises
    ------
    ConfigError
        There is no such scenario, scale or file, or a key in it is wrong.

    Examples
    --------
    >>> import joinsim as js
    >>> js.scenario("spo-fig17", scale="smoke").config.topology
    'spo_join'
    """
    found = Scenario(str(name), scale=scale)
    # What is wrong with its file is reported now, and not when it first runs.
    found.base  # noqa: B018
    return found


def show(
    topology: Named,
    *,
    sink: SinkPlace = "partitioned",
    **parameters: Any,
) -> ActorGraph:
    """Return the actors of a topology and who sends to whom, for its example query.

    With *sink* ``"partitioned"`` each PE that finds results has a sink of its own; with
    ``"single"`` all share one.

    The result is a networkx graph: a node per actor with its ``role`` and ``site``, an edge per
    channel. It prints as a line per operator and per port.

    Raises
    ------
    TopologyError
        There is no such topology, or the parameters do not fit.
    ConfigError
        A parameter does not exist, or its value is not allowed.

    Examples
    --------
    >>> import joinsim as js
    >>> graph = js.show("split_join", pes=3, sink="single")
    >>> sorted(graph)
    ['joiner.0', 'joiner.1', 'joiner.2', 'router', 'sink', 'source']
    >>> graph
    ActorGraph with 6 nodes and 7 edges
    source  source
        out -> router
    router  router
        joiner -> joiner.0, joiner.1, joiner.2
    joiner  joiner.0, joiner.1, joiner.2
        sink -> sink
    sink  sink
    """
    system = find_topology(topology)
    job = replace(system.example(), sink=sink)
    return system.build(job, make_parameters(system, parameters))


def draw(
    topology: Named, path: str | Path, *, sink: SinkPlace = "partitioned", **parameters: Any
) -> Path:
    """Draw into a file who sends to whom in a topology; return the file's path.

    Parameters
    ----------
    topology, sink, parameters
        As for `show`.
    path
        The file, whose name ends in ``.svg``, ``.png`` or ``.pdf``.

    Raises
    ------
    TopologyError, ConfigError
        As for `show`; also where the file is of no such kind.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, joinsim as js
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     js.draw("split_join", f"{folder}/split_join.svg", pes=3).read_text()[:4]
    '<svg'
    """
    from scenarios.report.topology_drawing import draw_topology

    graph = show(topology, sink=sink, **parameters)
    file = at_home(path)
    draw_topology(graph, find_topology(topology).title, file)
    return file
